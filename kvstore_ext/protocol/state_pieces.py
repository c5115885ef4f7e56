"""States between worker and server in pieces: however large one is, little of it is on the way.

A message carries less than 4 GiB, and what is on the way is there several times. Both sides find
the pieces by the state's outline. While a state of several pieces is fetched nobody may train with
it: the pieces would be of different steps, as those of several servers would.
"""
from __future__ import annotations

import math
from typing import (
    Any,
    Dict,
    Generic,
    Hashable,
    List,
    NamedTuple,
    Optional,
    Sequence,
    Tuple,
    TypeVar,
)

import numpy as np

from .. import _core
from .questions import Question, all_of, answer_to, ask
from .state_format import Outline, build, elements, flatten, leaves

# Bytes of a piece, at most; more than the elements of any type have.
PIECE = 64 << 20
_MOST_PIECES = 1 << 20

_Found = TypeVar("_Found")


class Span(NamedTuple):
    """Elements of a state's array of this number."""

    array: int
    begin: int
    end: int


def cut(outline: Outline, most: int) -> List[List[Span]]:
    """The pieces of a state, each of at most so many bytes; one without elements where it has
    none. Raises ValueError where so many bytes are no number, or make more pieces than anybody
    needs."""
    total = sum(np.dtype(dtype).itemsize * math.prod(shape) for dtype, shape in leaves(outline))
    if not isinstance(most, int) or total > most * _MOST_PIECES:
        raise ValueError(f"pieces of {most!r} bytes, of {total}")
    pieces: List[List[Span]] = [[]]
    room = most
    for number, (dtype, shape) in enumerate(leaves(outline)):
        size, count, begin = np.dtype(dtype).itemsize, math.prod(shape), 0
        if count and size > most:
            raise ValueError(f"pieces of {most} bytes, of elements of {size}")
        while begin < count:
            if room < size:
                pieces.append([])
                room = most
            end = min(count, begin + room // size)
            pieces[-1].append(Span(number, begin, end))
            room -= (end - begin) * size
            begin = end
    return pieces


class Section(NamedTuple):
    """An array's elements from one on: what a server has of it begins there."""

    array: Any
    begin: int

    def read(self, span: Span) -> bytes:
        return elements(self.array, self.begin + span.begin, self.begin + span.end).tobytes()


def whole(arrays: Sequence[Any]) -> List[Section]:
    """All elements of each."""
    return [Section(array, 0) for array in arrays]


def read(sections: Sequence[Section], piece: Sequence[Span]) -> bytes:
    """The bytes of a piece."""
    return b"".join(sections[span.array].read(span) for span in piece)


class Arriving:
    """The arrays of a state whose pieces come one after the other."""

    def __init__(self, outline: Outline, most: int) -> None:
        self.outline = outline
        self.arrays = [np.empty(shape, dtype) for dtype, shape in leaves(outline)]
        self._pieces = cut(outline, most)
        self.missing = len(self._pieces)

    def take(self, data: bytes) -> None:
        """The next piece."""
        offset = 0
        for number, begin, end in self._pieces[-self.missing]:
            array = self.arrays[number]
            part = np.frombuffer(data, array.dtype, end - begin, offset)
            array.reshape(-1)[begin:end] = part
            offset += part.nbytes
        self.missing -= 1

    def piece(self, asked: Dict[str, Any]) -> bytes:
        """One that was asked for, once nothing is missing."""
        return read(whole(self.arrays), cut(self.outline, asked["most"])[asked["piece"]])

    def state(self) -> Any:
        """The state, once nothing is missing; its arrays go into it."""
        arrays, self.arrays = self.arrays, []
        return build(self.outline, arrays)


class _Begun(Generic[_Found]):
    """What has asked the first of its questions."""

    _worker: _core.Worker
    _question: Question

    def finish(self) -> _Found:
        """Returns with what comes of it; raises as `answer_to`."""
        raise NotImplementedError

    def give_up(self) -> None:
        """Nobody will finish it."""
        self._worker.give_up(self._question.number)


def finish_all(begun: Sequence[_Begun[_Found]]) -> List[_Found]:
    """Finishes one after the other, up to the first that raises."""
    return all_of(begun, lambda each: each.finish(), lambda each: each.give_up())


class Sending(_Begun[None]):
    """A worker's: leaves a state with whoever answers to a name on a server (`arrived`).

    The first piece is asked at once, the others by `finish`.
    """

    def __init__(
        self,
        worker: _core.Worker,
        server: int,
        name: str,
        asked: Dict[str, Any],
        outline: Outline,
        sections: Sequence[Section],
    ) -> None:
        self._worker, self._server, self._name = worker, server, name
        self._asked = {**asked, "outline": outline, "most": PIECE}
        self._sections = sections
        self._pieces = cut(outline, PIECE)
        self._question = self._ask(0)

    def finish(self) -> None:
        """Returns once the server has it all; raises as `answer_to`."""
        answer_to(self._worker, self._question)
        for number in range(1, len(self._pieces)):
            answer_to(self._worker, self._ask(number))

    def _ask(self, number: int) -> Question:
        asked = {**self._asked, "piece": number}
        data = read(self._sections, self._pieces[number])
        return ask(self._worker, self._server, self._name, asked, data)


class Fetching(_Begun[Tuple[Dict[str, Any], Optional[Arriving]]]):
    """A worker's: asks for a state of which a server's answerer hands out pieces (`piece_of`)."""

    def __init__(
        self, worker: _core.Worker, server: int, name: str, asked: Dict[str, Any]
    ) -> None:
        self._worker, self._server, self._name = worker, server, name
        self._asked = {**asked, "most": PIECE}
        self._question = self._ask(0)

    def finish(self) -> Tuple[Dict[str, Any], Optional[Arriving]]:
        """What the server says of it, and all of it, or None where it has none; raises as
        `answer_to`."""
        answer, data = answer_to(self._worker, self._question)
        if "outline" not in answer:
            return answer, None
        arriving = Arriving(answer["outline"], PIECE)
        arriving.take(data)
        for number in range(1, arriving.missing + 1):
            arriving.take(answer_to(self._worker, self._ask(number))[1])
        return answer, arriving

    def _ask(self, number: int) -> Question:
        return ask(self._worker, self._server, self._name, {**self._asked, "piece": number})


class Arrivals:
    """A server's: states that are coming, by what they are of. Of one thread."""

    def __init__(self) -> None:
        self._open: Dict[Hashable, Arriving] = {}

    def take(self, of: Hashable, asked: Dict[str, Any], data: bytes) -> Optional[Arriving]:
        """The next piece; the state, once it is the last."""
        if asked["piece"] == 0:
            self._open[of] = Arriving(asked["outline"], asked["most"])
        arriving = self._open[of]
        arriving.take(data)
        return None if arriving.missing else self._open.pop(of)


def piece_of(state: Any, asked: Dict[str, Any]) -> Tuple[Outline, bytes]:
    """A server's: the outline of a state, and the piece of it that was asked for."""
    outline, arrays = flatten(state)
    return outline, read(whole(arrays), cut(outline, asked["most"])[asked["piece"]])
