"""The command kvstore-ext predict: which store is best on a cluster, before anything runs on it."""
from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any, Callable, List, Tuple

from ..trace.command import errors_in_one_line
from ..trace.reading import TraceError, read
from . import measuring
from .cluster import Cluster, Stragglers
from .devices import check_scales, on
from .job_trace import network_of
from .models_exchanged import EcDnn
from .network import Network, NetworkError, load, names
from .picture import PICTURES, draw
from .profiling import ProfileError, profile
from .progress import followed, say
from .speeds import Speeds, SpeedsError
from .stores import stores
from .sweep import rows
from .table import table

_ASKED_FOR = "ec_dnn"  # which trains otherwise
_ENDINGS = f"{', '.join(PICTURES[:-1])} or {PICTURES[-1]}"
_RATES = [1.0, 4.0, 10.0, 25.0]
_BATCH = 32
_HOSTS = [2, 4, 8, 16, 32, 64, 128, 256, 512]


def main(arguments: List[str]) -> int:
    """Returns 0; exits with status 1 where there is no network, or no speeds."""
    parser = _parser()
    found = parser.parse_args(arguments)
    if found.profile == []:
        parser.error("argument --profile: no script to run")
    names_of_stores = [*stores(Speeds()), _ASKED_FOR]
    unknown = [name for name in found.stores if name not in names_of_stores]
    if unknown:
        allowed = f"there are {', '.join(names_of_stores)}"
        parser.error(f"argument --stores: there is no store {unknown[0]!r}; {allowed}")
    if _ASKED_FOR not in found.stores:
        for option in ("tau", "examples"):
            if getattr(found, option) is not None:
                parser.error(f"argument --{option}: only with {_ASKED_FOR} among --stores")
    with errors_in_one_line("predict", NetworkError, TraceError, SpeedsError, ProfileError):
        # Mistakes are told before a script runs for hours.
        given = Speeds.load(found.speeds) if found.speeds else None
        for file in (found.save_speeds, found.output):
            if file is not None:
                file.parent.mkdir(parents=True, exist_ok=True)
        network = _network(found)
        speeds = given or _measured()
        if found.save_speeds:
            speeds.save(found.save_speeds)
        models = EcDnn(found.tau or EcDnn.tau, examples=found.examples or EcDnn.examples)
        known = {**stores(speeds), _ASKED_FOR: models}
        wanted = found.stores or [name for name in known if name != _ASKED_FOR]
        chosen = {name: known[name] for name in wanted}
        cases = rows(network, _cluster(found), found.bandwidth, found.hosts, chosen)
        predicted = list(followed(cases, _announced(found, len(chosen))))
        print(_described(network))
        print("\n".join(table(predicted)))
        if draw(predicted, found.output):
            print(f"{found.output}: the same as a picture")
        else:
            print("no picture: matplotlib is not installed")
    return 0


def _announced(found: argparse.Namespace, stores: int) -> int:
    """Says how many cases there are, before they take their time; returns that."""
    count = len(found.bandwidth) * len(found.hosts) * stores
    say(
        f"{count} cases (bandwidths: {len(found.bandwidth)}, numbers of hosts: "
        f"{len(found.hosts)}, stores: {stores}); --bandwidth, --hosts and --stores choose them"
    )
    return count


def _described(network: Network) -> str:
    size = f"{network.elements:,} parameters, {network.batch} samples a worker and iteration"
    return f"{network.name}: {size}, {network.compute:.4f} s of computing; {network.device}"


def _network(found: argparse.Namespace) -> Network:
    if found.profile:
        if found.device:
            check_scales(found.device, "the script", "this host")
        say(f"one worker and one server run all of {found.profile[0]} first, traced")
        network = profile(found.profile, found.batch or _BATCH)
    elif found.trace:
        source = f"kvstore-launch --trace {found.trace}"
        network = network_of(read(found.trace), source, found.batch or _BATCH)
    else:
        network = load(found.model)
        if found.batch not in (None, network.batch):
            raise NetworkError(
                f"--batch is {found.batch}; that of --model {found.model} is {network.batch}, for "
                "which it was measured"
            )
    return on(network, found.device) if found.device else network


def _measured() -> Speeds:
    try:
        from .. import _core
    except ImportError:
        say("kvstore_ext is not compiled here: to encode and decode counts as taking no time")
        return Speeds()
    return measuring.measure(_core)


def _cluster(found: argparse.Namespace) -> Cluster:
    slow = Stragglers(*found.stragglers) if found.stragglers else None
    return Cluster(
        1,
        1.0,
        1.0,
        delay=found.latency * 1e-6,
        servers=found.servers,
        beside=not found.apart,
        workers_per_host=found.workers_per_host,
        processors=found.processors,
        stragglers=slow,
    )


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="kvstore-ext predict",
        usage="%(prog)s (--model NAME | --trace DIR | --profile SCRIPT) [--bandwidth GBIT,...] "
        "[--hosts N,...] ...",
        description="Predict how fast each store trains a network on clusters of several sizes, "
        "and what limits it.",
        allow_abbrev=False,
    )
    add = parser.add_argument
    network = parser.add_mutually_exclusive_group(required=True)
    about = f"{', '.join(names())}, or a file of benchmarks.replay profile"
    network.add_argument("--model", metavar="NAME", help=about)
    about = "the network of a job that kvstore-launch --trace DIR has traced"
    network.add_argument("--trace", metavar="DIR", help=about)
    about = "the last option: a script and its arguments, which one worker and one server run here"
    network.add_argument("--profile", metavar="SCRIPT", nargs=argparse.REMAINDER, help=about)
    about = f"samples a worker and iteration, of --trace and --profile; default: {_BATCH}"
    add("--batch", type=_count, metavar="N", help=about)
    about = "what computes: a card's name, or the seconds of an iteration without communication"
    add("--device", metavar="DEVICE", help=about)
    about = f"Gbit/s of a host's link each way; default: {','.join(f'{each:g}' for each in _RATES)}"
    add("--bandwidth", type=_list(float, 1e-3), default=_RATES, metavar="GBIT,...", help=about)
    about = f"default: {','.join(map(str, _HOSTS))}"
    add("--hosts", type=_list(int, 1), default=_HOSTS, metavar="N,...", help=about)
    about = "microseconds from a host to another, one way; default: 25"
    add("--latency", type=_number(0), default=25.0, metavar="US", help=about)
    add("--servers", type=_count, metavar="N", help="default: as many as hosts")
    add("--apart", action="store_true", help="servers have hosts of their own")
    add("--workers-per-host", type=_count, default=1, metavar="N", help="default: 1")
    about = "of a host, for what is not computing the network; default: 4"
    add("--processors", type=_count, default=4, metavar="N", help=about)
    about = "so many workers compute so many times as slowly: 1,1.5"
    add("--stragglers", type=_stragglers, metavar="N,FACTOR", help=about)
    about = "default: all but ec_dnn, which needs fewer messages for another training"
    add("--stores", type=lambda text: text.split(","), default=[], metavar="STORE,...", help=about)
    about = f"of ec_dnn: steps from an aggregation to the next; default: {EcDnn.tau}"
    add("--tau", type=_count, metavar="STEPS", help=about)
    about = f"of ec_dnn, a part for each worker; default: {EcDnn.examples}, as CIFAR has"
    add("--examples", type=_count, metavar="N", help=about)
    about = "speeds of the hosts' processors, of --save-speeds; default: measured here"
    add("--speeds", type=Path, metavar="FILE", help=about)
    add("--save-speeds", type=Path, metavar="FILE", help="for --speeds, on another host")
    about = f"the picture, {_ENDINGS}; default: predict.svg"
    add("-o", "--output", type=_picture, default=Path("predict.svg"), metavar="FILE", help=about)
    return parser


def _refused(text: str, allowed: str) -> argparse.ArgumentTypeError:
    return argparse.ArgumentTypeError(f"found '{text}', allowed {allowed}")


def _picture(text: str) -> Path:
    if Path(text).suffix not in PICTURES:
        raise _refused(text, f"are names that end with {_ENDINGS}")
    return Path(text)


def _number(least: float) -> Callable[[str], float]:
    def read_number(text: str) -> float:
        found = _numbers(text, float, least)
        if len(found) != 1:
            raise _refused(text, f"is a number of {least:g} or more")
        return float(found[0])

    return read_number


def _count(text: str) -> int:
    found = _numbers(text, int, 1)
    if len(found) != 1:
        raise _refused(text, "is a whole number of 1 or more")
    return int(found[0])


def _stragglers(text: str) -> Tuple[int, float]:
    found = _numbers(text, float, 1)
    if len(found) != 2 or found[0] != int(found[0]):
        raise _refused(text, "is a whole number of workers, a comma, and a number of 1 or more")
    return int(found[0]), found[1]


def _list(kind: Any, least: float) -> Callable[[str], List[Any]]:
    def read_list(text: str) -> List[Any]:
        found = _numbers(text, kind, least)
        if not found:
            numbers = "whole numbers" if kind is int else "numbers"
            raise _refused(text, f"are {numbers} of {least:g} or more, separated by commas")
        return found

    return read_list


def _numbers(text: str, kind: Any, least: float) -> List[Any]:
    """Those that commas separate; none where any is too small, or no number."""
    try:
        values = [kind(each) for each in text.split(",")]
    except ValueError:
        return []
    return values if all(least <= value < float("inf") for value in values) else []
