"""How the servers of a host fare: what counts of their `/metrics`, as rates between two looks, and the last hour of it.

    history = History()
    now = history.take(VitalsReading(moment, {"relay": Numbers(text)}))  # `ServerStats`: rates since the last that was
    kept

A counter that is lower than before belongs to a server that was started anew: then all of it is new. What two servers
of one process both tell of that process counts once; it is the process if it was started at the same moment.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterable, Mapping

from attrs import fields, frozen

from svc_proto.basics.metrics import HISTOGRAM_BOUNDS
from svc_proto.basics.moment import Moment
from svc_proto.schema.openmetrics import MetricSamples

__all__ = ["SAMPLE_INTERVAL", "NAMES", "SPAN", "StatsHistory", "MetricsReading", "ServerStats"]

SAMPLE_INTERVAL = 15.0  # s between two looks that are kept
SPAN = 3600.0  # s for which they are
INTERVAL_TOLERANCE = 0.9  # of `SAMPLE_INTERVAL`: a look that comes a little early is kept
OURS = ("/metrics",)  # the route of the looks themselves, which are nobody's requests
GOOD_OUTCOMES = ("success", "confirmation", "no status")  # outcomes of commands that are no failure


@frozen
class MetricsReading:
    """What servers said when they were asked at one moment, by role (`relay`, `api`); who is silent is not there."""

    now: Moment
    servers: Mapping[str, MetricSamples]


@frozen(kw_only=True)
class ServerStats:
    """One look. None: nobody said so, or for a rate there is none to compare with."""

    at: float  # epoch s
    phones: float | None  # that can be driven
    sessions: float | None  # paired devices
    sockets: float | None  # that are signed in
    requests: float | None  # a second
    errors: float | None  # of them, answered 500 or more
    commands: float | None  # to phones, a second, that were settled
    failed: float | None  # of them, those that did not succeed
    waiting: float | None  # commands whose phone has not answered yet
    turns: float | None  # that are not over
    ended: float | None  # turns a second that came to their end
    deltas: float | None  # pieces of text a second
    tokens: float | None  # a second
    memory: float | None  # bytes
    processor: float | None  # seconds of it a second: 1 is one core
    descriptors: float | None  # open
    lag: float | None  # s by which timers fired late, in the mean
    latest: (
        float | None
    )  # s: none of them later than that; the last of `HISTOGRAM_BOUNDS` stands for all that is longer
    store: float | None  # s for an answer of the store, in the mean
    strangers: float | None  # bytes that are held for peers whom nobody knows

    def numbers(self) -> tuple[float | None, ...]:
        """In the order of `NAMES`, each with four digits, which is what anybody can see of it; the time is whole."""
        _, *others = (getattr(self, name) for name in NAMES)
        return (self.at, *(None if value is None else float(f"{value:.4g}") for value in others))


NAMES = tuple(field.name for field in fields(ServerStats))


class StatsHistory:
    """Looks, at most one each `every` seconds, for `span` seconds: the oldest goes for the newest."""

    def __init__(self, *, every: float = SAMPLE_INTERVAL, span: float = SPAN) -> None:
        self._every = every
        self._kept: deque[ServerStats] = deque(maxlen=int(span / every))
        self._last: MetricsReading | None = None

    def add(self, reading: MetricsReading) -> ServerStats:
        """Look at what was read, and keep it if it is time to. What was overtaken by another look has no rates."""
        found = _stats_between(self._last, reading)
        if self._last is None or reading.now.mono - self._last.now.mono >= INTERVAL_TOLERANCE * self._every:
            self._kept.append(found)
            self._last = reading
        return found

    def rows(self) -> list[tuple[float | None, ...]]:
        """All that are kept, the oldest first, in the order of `NAMES`."""
        return [each.numbers() for each in self._kept]

    def of(self, name: str) -> list[float | None]:
        """One number of all of them."""
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
    """What has come since the reading before, of servers that are in both."""

    def __init__(self, before: MetricsReading | None, reading: MetricsReading) -> None:
        self._seconds = 0.0 if before is None else reading.now.mono - before.now.mono
        known = {} if before is None or self._seconds <= 0 else before.servers
        self._pairs = [(known[role], numbers) for role, numbers in reading.servers.items() if role in known]
        starts = {new.total("process_start_time_seconds"): (old, new) for old, new in self._pairs}
        self._processes = list(starts.values())

    def rate(self, name: str, count: Count = MetricSamples.total, *, processes: bool = False) -> float | None:
        """By how much a counter grew in a second."""
        grown = self.grown(name, count, processes=processes)
        return None if grown is None else grown / self._seconds

    def grown(self, name: str, count: Count = MetricSamples.total, *, processes: bool = False) -> float | None:
        """By how much a counter grew."""
        sums = [
            _growth(count(old, name), new)
            for old, now in (self._processes if processes else self._pairs)
            if (new := count(now, name)) is not None
        ]
        return sum(sums) if sums else None

    def spread(self, name: str) -> tuple[dict[float, float], float, float]:
        """Of a histogram what has come to it: how many within each of `HISTOGRAM_BOUNDS`, how many at all, and their
        sum in s."""
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
