"""Serves a job's figures to Prometheus, from the launcher: one scrape has all processes.

prometheus_client is imported only here, once it is asked for: the launcher needs it for nothing
else. Who can reach the port can read these numbers, and do nothing more.
"""

from __future__ import annotations

from typing import Any, Callable, Iterator

from .status import Row

# By metric: the figure of a process's row, its role if only one has it, and what it is. Those that
# end in _total are counters, whose rates Prometheus makes itself.
METRICS = {
    "kvstore_ext_steps_total": ("made", "worker", "Steps that the worker has made in this job."),
    "kvstore_ext_sent_bytes_total": ("sent", None, "Bytes that the process has sent on the lane."),
    "kvstore_ext_received_bytes_total": (
        "received",
        None,
        "Bytes that the process has received on the lane.",
    ),
    "kvstore_ext_waiting_ratio": (
        "waiting",
        "worker",
        "Share of the last seconds in which the worker needed parameters that were on their way.",
    ),
    "kvstore_ext_lateness_seconds": (
        "late",
        "worker",
        "Time by which the worker's pushes have lately come after the first worker's.",
    ),
    "kvstore_ext_held_bytes": (
        "held",
        "server",
        "Bytes of values and open sums that the server holds.",
    ),
}
UP = "kvstore_ext_process_up"
_UP_HELP = "Whether the process has joined the job and has not ended."


class MetricsError(Exception):
    """Metrics cannot be served; says why."""


def serve(latest: Callable[[], Row], address: str, port: int) -> None:
    """Serves what `latest` returns, from a thread of its own, until the launcher ends.

    Raises MetricsError without prometheus_client, or where it cannot listen there.
    """
    try:
        import prometheus_client
        from prometheus_client import core
    except ImportError:
        raise MetricsError(
            "--metrics-port needs prometheus_client: pip install prometheus-client"
        ) from None

    class Collector:
        def collect(self) -> Iterator[Any]:
            return families(core, latest())

    registry = prometheus_client.CollectorRegistry()
    registry.register(Collector())  # type: ignore[arg-type]  # it need not be a subclass
    try:
        prometheus_client.start_http_server(port, address, registry)
    except OSError as error:
        reason = error.strerror or error
        raise MetricsError(f"--metrics-port: cannot listen at {address}:{port}: {reason}") from None


def families(core: Any, status: Row) -> Iterator[Any]:
    """Yields each metric with a sample a process; `core` is prometheus_client's."""
    up = core.GaugeMetricFamily(UP, _UP_HELP, labels=["role", "rank", "host"])
    for row in status["processes"]:
        up.add_metric(_labels(row), float(row["state"] == "runs"))
    yield up
    for name, (figure, role, text) in METRICS.items():
        kind = core.CounterMetricFamily if name.endswith("_total") else core.GaugeMetricFamily
        family = kind(name, text, labels=["role", "rank", "host"])
        for row in status["processes"]:
            if row["role"] == role or (role is None and row["role"] != "scheduler"):
                family.add_metric(_labels(row), float(row[figure]))
        yield family


def _labels(row: Row) -> list[str]:
    return [row["role"], str(row["rank"]), row["host"]]
