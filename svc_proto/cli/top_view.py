"""View of `svc top` on the servers of this host: each number in readable form, and its history in small bars."""

from collections.abc import Callable, Iterable, Sequence

from attrs import frozen

from svc_proto.service_clients.server_stats import ServerStats, StatsHistory

__all__ = ["COLUMNS", "HEADS", "StatsRow", "sparkline", "once_rows", "stats_rows", "explain_missing"]

COLUMNS = ("WHAT", "NOW", "BESIDE IT")  # of `once_rows`
DASH = "-"
BARS = "▁▂▃▄▅▆▇█"
HEADS = {"relay": "relay", "api": "API", "dashboard": "dashboard"}
_Said = Callable[[float | None], str]


@frozen
class StatsRow:
    """A line of the table: title, present value, side note, and bars."""

    title: str
    value: str
    beside: str
    bars: str


def stats_rows(history: StatsHistory, now: ServerStats, width: int) -> list[StatsRow]:
    """Return the table, with bars for the last `width` samples."""
    return [
        StatsRow(title, said(getattr(now, name)), beside(now), sparkline(history.of(name), width))
        for title, name, said, beside in _ROWS
    ]


def once_rows(now: ServerStats) -> list[tuple[str, str, str]]:
    """Return the table without bars, in the order of `COLUMNS`."""
    return [(title, said(getattr(now, name)), beside(now)) for title, name, said, beside in _ROWS]


def sparkline(values: Sequence[float | None], width: int) -> str:
    """Return the last `width` values as bars relative to their maximum; a gap where there is no number."""
    last = values[-width:]
    most = max((value for value in last if value is not None), default=0.0)
    return "".join(_bar(value, most) for value in last)


def explain_missing(statuses: Iterable[tuple[str, int]]) -> str:
    """Return why the first of these servers has no metrics.

    `statuses` are pairs of role and status of an answer (0: there was none), at least one.
    """
    found = dict(statuses)
    role, status = next(iter(found.items()))
    name = HEADS.get(role, role)
    if status in (401, 403):
        return f"the {name} does not show its metrics ({status}): set SVC_METRICS_TOKEN as its settings have it"
    if status == 503:
        return f"the {name} has no metrics: its host needs the package prometheus-client"
    return f"the {name} does not answer" if status == 0 else f"the {name} answers {status} at /metrics"


def _bar(value: float | None, most: float) -> str:
    if value is None:
        return " "
    return BARS[min(int(value / most * len(BARS)), len(BARS) - 1)] if most > 0 else BARS[0]


# --- numbers


def _count(value: float | None) -> str:
    if value is None:
        return DASH
    return f"{value:,.0f}" if value >= 100 or value == int(value) else f"{value:.2g}"


def _a_second(value: float | None) -> str:
    return DASH if value is None else f"{_count(value)}/s"


def _a_minute(value: float | None) -> str:
    return DASH if value is None else f"{_count(float(f'{value * 60:.3g}'))}/min"


def _bytes(value: float | None) -> str:
    if value is None:
        return DASH
    for unit in ("B", "KB", "MB"):
        if value < 1024:
            return f"{value:.1f} {unit}".replace(".0 ", " ")
        value /= 1024
    return f"{value:.1f} GB"


def _share(value: float | None) -> str:
    return DASH if value is None else f"{_count(float(f'{value * 100:.2g}'))} %"


def _time(value: float | None) -> str:
    if value is None:
        return DASH
    return f"{_count(float(f'{value * 1000:.2g}'))} ms" if value < 1 else f"{_count(float(f'{value:.2g}'))} s"


_ROWS: tuple[tuple[str, str, _Said, Callable[[ServerStats], str]], ...] = (
    ("Phones", "phones", _count, lambda now: f"{_count(now.sessions)} paired"),
    ("Sockets", "sockets", _count, lambda now: f"{_count(now.descriptors)} descriptors open"),
    ("Requests", "requests", _a_second, lambda now: f"{_a_second(now.errors)} fail"),
    ("Commands", "commands", _a_minute, lambda now: f"{_count(now.waiting)} under way, {_a_minute(now.failed)} fail"),
    ("Turns", "turns", _count, lambda now: f"{_a_minute(now.ended)} end"),
    ("Tokens", "tokens", _a_second, lambda now: f"{_a_second(now.deltas)} pieces of text"),
    ("Memory", "memory", _bytes, lambda now: f"{_bytes(now.strangers)} for strangers"),
    ("Processor", "processor", _share, lambda now: "of one core"),
    ("Loop lag", "lag", _time, lambda now: "" if now.latest is None else f"none above {_time(now.latest)}"),
    ("Store", "store", _time, lambda now: "for an answer"),
)
