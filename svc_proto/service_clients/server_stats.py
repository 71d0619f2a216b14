"""Statistics of a host's servers from their `/metrics`: rates between two readings, and the history of an hour.

    history = StatsHistory()
    now = history.add(MetricsReading(moment, {"relay": MetricSamples(text)}))  # `ServerStats`; rates from the second on

A counter that is lower than before belongs to a restarted server: then all of it is new. Figures of a process that two
servers report count once; servers with the same start time are one process.
"""

from collections import deque
from collections.abc import Callable, Collection, Iterable, Mapping

from attrs import fields, frozen

from svc_proto.basics.metrics import HISTOGRAM_BOUNDS
from svc_proto.basics.moment import Moment
from svc_proto.schema.openmetrics import MetricSamples

__all__ = ["SAMPLE_INTERVAL", "NAMES", "SPAN", "StatsHistory", "MetricsReading", "ServerStats"]

SAMPLE_INTERVAL = 15.0  # s between two stored readings
SPAN = 3600.0  # s for which readings are stored
INTERVAL_TOLERANCE = 0.9  # of `SAMPLE_INTERVAL`: a reading that comes a little early is stored
OURS = ("/metrics",)  # route of the readings themselves, which do not count as requests
GOOD_OUTCOMES = ("success", "confirmation", "no status")  # outcomes of commands that are no failures


@frozen
class MetricsReading:
    """Metrics of servers at one moment, by role (`relay`, `api`); a server without an answer is missing."""

    now: Moment
    servers: Mapping[str, MetricSamples]


@frozen(kw_only=True)
class ServerStats:
    """Figures of one reading.

    None: no server reported the metric, there is no earlier reading for a rate, or nothing was counted for a mean.
    """

    at: float  # epoch s
    phones: float | None  # connected
    sessions: float | None  # paired devices
    sockets: float | None  # authenticated
    requests: float | None  # per second
    errors: float | None  # those per second with status 500 or more
    commands: float | None  # completed commands to phones per second
    failed: float | None  # those per second without success
    waiting: float | None  # commands whose phone has not answered yet
    turns: float | None  # live
    ended: float | None  # ended turns per second
    deltas: float | None  # pieces of text per second
    tokens: float | None  # per second
    memory: float | None  # bytes
    processor: float | None  # seconds of CPU time per second: 1 is one core
    descriptors: float | None  # open
    lag: float | None  # s; mean delay of timers
    latest: float | None  # s; bound of all these delays, or the last of `HISTOGRAM_BOUNDS` if one was longer
    store: float | None  # s; mean duration of store requests
    strangers: float | None  # bytes held for unauthenticated connections

    def numbers(self) -> tuple[float | None, ...]:
        """Return the figures in the order of `NAMES`, with four significant digits; the time is not shortened."""
        _, *others = (getattr(self, name) for name in NAMES)
        return (self.at, *(None if value is None else float(f"{value:.4g}") for value in others))


NAMES = tuple(field.name for field in fields(ServerStats))


class StatsHistory:
    """History of figures, one for about each `every` seconds, for `span` seconds; the newest displaces the oldest."""

    def __init__(self, *, every: float = SAMPLE_INTERVAL, span: float = SPAN) -> None:
        self._every = every
        self._kept: deque[ServerStats] = deque(maxlen=int(span / every))
        self._last: MetricsReading | None = None

    def add(self, reading: MetricsReading) -> ServerStats:
        """Compute the figures of a reading, with rates since the last stored reading; store it if it is due.

        The first reading, and one that is not later than the stored one, has no rates.
        """
        found = _stats_between(self._last, reading)
        if self._last is None or reading.now.mono - self._last.now.mono >= INTERVAL_TOLERANCE * self._every:
            self._kept.append(found)
            self._last = reading
        return found

    def rows(self) -> list[tuple[float | None, ...]]:
        """Return all stored figures, the oldest first, in the order of `NAMES`."""
        return [each.numbers() for each in self._kept]

    def of(self, name: str) -> list[float | None]:
        """Return the values of one figure in all stored readings, the oldest first."""
        return [getattr(each, name) for each in self._kept]


def _stats_between(before: MetricsReading | None, reading: MetricsReading) -> ServerStats:
    servers = reading.servers
    since = _MetricsDelta(before, reading)
    within, count, late = since.spread("svc_loop_lag_seconds")
    stored, asked = since.grown("svc_store_duration_seconds_sum"), since.grown("svc_store_duration_seconds_count")
    processes = {each.total("process_start_time_seconds"): each for each in servers.values()}.values()
    return ServerStats(
        at=round(reading.now.wall, 1),
        phones=_sum(servers.values(), "svc_phones"),
        sessions=_sum(servers.values(), "svc_sessions"),
        sockets=_sum(servers.values(), "svc_sockets", channel=("client",)),
        requests=since.rate("svc_http_requests_total", _of_others),
        errors=since.rate("svc_http_requests_total", _faults),
        commands=since.rate("svc_bridge_commands_total"),
        failed=since.rate("svc_bridge_commands_total", _failures),
        waiting=_sum(servers.values(), "svc_bridge_commands_waiting"),
        turns=_sum(servers.values(), "svc_runs"),
        ended=since.rate("svc_turns_total"),
        deltas=since.rate("svc_deltas_total"),
        tokens=since.rate("svc_tokens_total"),
        memory=_sum(processes, "process_resident_memory_bytes"),
        processor=since.rate("process_cpu_seconds_total", processes=True),
        descriptors=_sum(processes, "process_open_fds"),
        lag=late / count if count else None,
        latest=next((bound for bound in HISTOGRAM_BOUNDS if within[bound] >= count), HISTOGRAM_BOUNDS[-1])
        if count
        else None,
        store=stored / asked if stored is not None and asked else None,
        strangers=_sum(servers.values(), "svc_strangers_held_bytes"),
    )


Count = Callable[[MetricSamples, str], float | None]


class _MetricsDelta:
    """Changes since the reading before, for servers that are in both."""

    def __init__(self, before: MetricsReading | None, reading: MetricsReading) -> None:
        self._seconds = 0.0 if before is None else reading.now.mono - before.now.mono
        known = {} if before is None or self._seconds <= 0 else before.servers
        self._pairs = [(known[role], numbers) for role, numbers in reading.servers.items() if role in known]
        starts = {new.total("process_start_time_seconds"): (old, new) for old, new in self._pairs}
        self._processes = list(starts.values())

    def rate(self, name: str, count: Count = MetricSamples.total, *, processes: bool = False) -> float | None:
        """Return the growth of a counter per second; None if no server that is in both readings has it."""
        grown = self.grown(name, count, processes=processes)
        return None if grown is None else grown / self._seconds

    def grown(self, name: str, count: Count = MetricSamples.total, *, processes: bool = False) -> float | None:
        """Return the growth of a counter; None if no server that is in both readings has it."""
        sums = [
            _growth(count(old, name), new)
            for old, now in (self._processes if processes else self._pairs)
            if (new := count(now, name)) is not None
        ]
        return sum(sums) if sums else None

    def spread(self, name: str) -> tuple[dict[float, float], float, float]:
        """Return the growth of a histogram: counts within each of `HISTOGRAM_BOUNDS`, total count, and sum in s."""
        within = dict.fromkeys(HISTOGRAM_BOUNDS, 0.0)
        for old, new in self._pairs:
            before, after = old.by(f"{name}_bucket", "le"), new.by(f"{name}_bucket", "le")
            for bound in HISTOGRAM_BOUNDS:
                within[bound] += _growth(before.get(str(bound)), after.get(str(bound), 0.0))
        count = self.grown(f"{name}_count") or 0.0
        return within, count, self.grown(f"{name}_sum") or 0.0


def _growth(old: float | None, new: float) -> float:
    return new if old is None or new < old else new - old


def _sum(servers: Iterable[MetricSamples], name: str, **only: Collection[str]) -> float | None:
    found = [total for each in servers if (total := each.total(name, **only)) is not None]
    return sum(found) if found else None


def _of_others(numbers: MetricSamples, name: str) -> float | None:
    return _without(numbers.total(name), numbers.total(name, route=OURS))


def _faults(numbers: MetricSamples, name: str) -> float | None:
    if numbers.total(name) is None:
        return None
    return sum(value for status, value in numbers.by(name, "status").items() if status >= "500")


def _failures(numbers: MetricSamples, name: str) -> float | None:
    return _without(numbers.total(name), numbers.total(name, outcome=GOOD_OUTCOMES))


def _without(total: float | None, part: float | None) -> float | None:
    return None if total is None or part is None else total - part
