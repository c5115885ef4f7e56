"""Parallel text from the CLDR, the Unicode Consortium's data on languages, as Babel carries it.

Names of territories, languages, scripts, currencies and units in two languages, and phrases that
Babel formats by the rules of either: dates, times, durations, quantities, amounts of money and
lists. Every pair of sentences says one value: a territory, a date, 12.5 kilometers. Which values
are held out is decided before any sentence is made, so that training sees none of them, in whatever
style; a list is held out or not as a whole, and made of names that are not.
"""
from __future__ import annotations

import datetime
import random
from typing import Any, Callable, List, Literal, Optional

from babel import Locale, UnknownLocaleError, dates, lists, numbers, units
from parallel_text import Pair

Draw = Callable[[random.Random], Any]
Say = Callable[[Any, Locale], List[Optional[str]]]  # a value in every style; None: has none

# How many values of each kind are drawn; names are as many as the two languages share.
COUNTS = {"date": 3000, "time": 600, "duration": 500, "quantity": 3000, "money": 3000, "list": 1500}
HELD_OUT = 0.05  # of the values of each kind
STYLES: list[Literal["full", "long", "medium", "short"]] = ["full", "long", "medium", "short"]


def parallel_text(
    source: str, target: str, seed: int = 0, scale: float = 1.0
) -> tuple[list[Pair], list[Pair]]:
    """Sentences of two languages, to train on and held out, each in an order drawn by `seed`.

    Parameters
    ----------
    source
        A locale that Babel knows, such as "en" or "pt_BR".
    target
        Another one.
    scale
        Multiplies the number of phrases, but not of names.

    Raises
    ------
    ValueError
        Babel does not know a locale.
    """
    locales = _locale(source), _locale(target)
    draw = random.Random(seed)
    names = _names(*locales)
    draw.shuffle(names)
    count = round(len(names) * HELD_OUT)
    held_out, training = names[:count], names[count:]
    names_in_lists = _Lists(training, *locales)
    kinds: list[tuple[str, Draw, Say]] = [
        ("date", _date, _say_date),
        ("time", _time, _say_time),
        ("duration", _duration, _say_duration),
        ("quantity", _Quantities(*locales), _say_quantity),
        ("money", _Money(*locales), _say_money),
        ("list", names_in_lists, names_in_lists.say),
    ]
    for kind, draw_value, say in kinds:
        wanted = round(COUNTS[kind] * scale)
        values = _distinct(draw_value, draw, wanted)
        count = round(len(values) * HELD_OUT)
        for i, value in enumerate(values):
            styles = zip(*(say(value, locale) for locale in locales))
            pairs = [pair for pair in styles if all(pair)]
            if pairs:  # in one style, drawn: there are as many sentences as values
                (held_out if i < count else training).append(_plain(draw.choice(pairs)))
    # What two values happen to be called alike must not be in both parts either.
    known = {pair[0] for pair in training}
    held_out = [pair for pair in dict.fromkeys(held_out) if pair[0] not in known]
    training = list(dict.fromkeys(training))
    draw.shuffle(training)
    draw.shuffle(held_out)
    return training, held_out


def _locale(name: str) -> Locale:
    try:
        return Locale.parse(name)
    except (UnknownLocaleError, ValueError) as error:
        raise ValueError(f"Babel knows no locale {name!r}: {error}") from None


def _plain(pair: Any) -> Pair:
    """The sentences with plain spaces; the CLDR has several kinds."""
    ours, theirs = (" ".join(sentence.split()) for sentence in pair)
    return ours, theirs


def _names(first: Locale, second: Locale) -> list[Pair]:
    """What territories, languages, scripts, currencies and units are called, once each."""
    found = []
    for table in ("territories", "languages", "scripts", "currencies", "unit_display_names"):
        ours, theirs = getattr(first, table), getattr(second, table)
        for code in sorted(set(ours) & set(theirs)):
            said = [names[code] for names in (ours, theirs)]
            if table == "unit_display_names":
                said = [names.get("long", "") for names in said]
            if all(isinstance(name, str) and name for name in said):
                found.append(_plain(said))
    return list({pair[0]: pair for pair in found}.values())


def _distinct(draw_value: Draw, draw: random.Random, count: int) -> list[Any]:
    """Up to `count` values, none twice; fewer where there are not so many."""
    found: dict[Any, None] = {}
    for _ in range(5 * count):
        if len(found) == count:
            break
        found[draw_value(draw)] = None
    return list(found)


def _number(draw: random.Random) -> float:
    """Small ones more often than large ones, some with a fraction."""
    number = draw.randrange(1, 10 ** draw.randint(1, 5))
    return number + draw.randrange(1, 10) / 10 if draw.random() < 0.25 else number


def _date(draw: random.Random) -> datetime.date:
    return datetime.date(1900, 1, 1) + datetime.timedelta(days=draw.randrange(55_000))


def _say_date(date: Any, locale: Locale) -> list[str | None]:
    said: list[str | None] = [dates.format_date(date, style, locale) for style in STYLES]
    for skeleton in ("MMMd", "MMMMd", "MMMEd", "yMMMEd", "yMMMM", "yQQQQ"):
        known = skeleton in locale.datetime_skeletons
        said.append(dates.format_skeleton(skeleton, date, locale=locale) if known else None)
    return said


def _time(draw: random.Random) -> datetime.time:
    return datetime.time(draw.randrange(24), draw.randrange(60), draw.randrange(60))


def _say_time(time: Any, locale: Locale) -> list[str | None]:
    return [dates.format_time(time, style, locale=locale) for style in STYLES]


def _duration(draw: random.Random) -> tuple[str, int, bool]:
    unit = draw.choice(("second", "minute", "hour", "day", "week", "month", "year"))
    return unit, draw.randrange(1, 60), draw.random() < 0.5


SECONDS = {"second": 1, "minute": 60, "hour": 3600, "day": 86400, "week": 604800,
           "month": 86400 * 30, "year": 86400 * 365}


def _say_duration(duration: Any, locale: Locale) -> list[str | None]:
    unit, count, past = duration
    delta = datetime.timedelta(seconds=SECONDS[unit] * count * (-1 if past else 1))
    how: dict[str, Any] = {"granularity": unit, "threshold": 10_000, "locale": locale}
    return [dates.format_timedelta(delta, **how),
            dates.format_timedelta(delta, add_direction=True, **how)]


class _Quantities:
    """Draws (number, unit) of the units that both languages name."""

    def __init__(self, first: Locale, second: Locale) -> None:
        shared = set(first.unit_display_names) & set(second.unit_display_names)
        self._units = sorted(unit for unit in shared if all(
            units.get_unit_name(unit, "long", locale) for locale in (first, second)))

    def __call__(self, draw: random.Random) -> tuple[float, str]:
        return _number(draw), draw.choice(self._units)


def _say_quantity(quantity: Any, locale: Locale) -> list[str | None]:
    number, unit = quantity
    lengths: list[Literal["long", "short"]] = ["long", "short"]
    said = [units.format_unit(number, unit, length, locale=locale) for length in lengths]
    # Babel writes the unit's identifier where the data has no pattern.
    return [None if unit in phrase else phrase for phrase in said]


class _Money:
    """Draws (amount, currency), some currencies far more often than others."""

    def __init__(self, first: Locale, second: Locale) -> None:
        self._currencies = sorted(set(first.currencies) & set(second.currencies))
        self._common = [code for code in ("EUR", "USD", "GBP", "JPY", "CHF", "SEK", "PLN", "INR")
                        if code in self._currencies]

    def __call__(self, draw: random.Random) -> tuple[float, str]:
        amount = round(_number(draw) + draw.choice((0, draw.randrange(100) / 100)), 2)
        return amount, draw.choice(draw.choice((self._common, self._currencies)))


def _say_money(money: Any, locale: Locale) -> list[str | None]:
    amount, currency = money
    return [numbers.format_currency(amount, currency, locale=locale),
            numbers.format_currency(amount, currency, locale=locale, format_type="name")]


class _Lists:
    """Draws two to four names, as pairs of what they are called."""

    def __init__(self, names: list[Pair], first: Locale, second: Locale) -> None:
        self._names = list(names)
        self._locales = [first, second]

    def __call__(self, draw: random.Random) -> tuple[Pair, ...]:
        return tuple(draw.sample(self._names, draw.randint(2, 4)))

    def say(self, pairs: Any, locale: Locale) -> list[str | None]:
        said = [pair[self._locales.index(locale)] for pair in pairs]
        return [lists.format_list(said, "standard", locale), lists.format_list(said, "or", locale)]
