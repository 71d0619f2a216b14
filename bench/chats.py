"""Benchmark of a long list of sessions, whose first and last pages are requested."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path

import attrs
from attrs import define, evolve, field
from sqlalchemy import create_engine, insert

from bench.api_servers import api_contestant
from bench.contestants import Server, placement, running, wait_healthy
from bench.load import Load, drive
from bench.measure import Progress, Scale, percentile, rotated
from bench.report import Column, Row, Table
from bench.rounds import Rounds, notes_on, take_round
from bench.wire import request
from runtimes.store.chat_tables import CHAT_SESSIONS
from runtimes.store.store_factory import open_store
from svc_proto.api.chat.records import ChatSession

__all__ = ["lists_table"]

CALLERS = 4  # the store answers sequentially, so more callers would only wait
PAGES = (50, 100)
BEGUN = 1_700_000_000.0  # Unix seconds of the first session

COLUMNS = (
    Column("per_second", "req/s, median", 0),
    Column("best_per_second", "best", 0),
    Column("ratio", "ratio", 2),
    Column("p50_ms", "p50 ms", 2),
    Column("p99_ms", "p99 ms", 2),
    Column("cpu_us", "server CPU µs", 0),
    Column("waited_percent", "kept waiting %", 0),
)


@define
class _Runs(Rounds):
    latencies: list[float] = field(factory=list)


def lists_table(scale: Scale, progress: Progress) -> Table:
    """Return the table of requests for the first and the last page of all sessions, for each page size of `PAGES`."""
    with tempfile.TemporaryDirectory(prefix="svc-bench-") as folder:
        path = Path(folder, "svc.db")
        _fill(path, scale.chats)
        one = api_contestant("asyncio")
        one = evolve(one, variables=(*one.variables, ("RELAY_SESSIONS_FILE", str(path))))
        asked = {
            f"{size} from {offset:,} on": request("GET", f"/api/sessions?limit={size}&offset={offset}")
            for size in PAGES
            for offset in (0, scale.chats - size)
        }
        runs = {name: _Runs() for name in asked}
        with running(one) as server:
            wait_healthy(server.address)
            for turn in range(-1, scale.load_rounds):  # one round to warm up
                for name in rotated(list(asked), turn):
                    progress(f"api: list of {scale.chats:,} sessions, round {turn + 1} of {scale.load_rounds}, {name}")
                    _round(_Runs() if turn < 0 else runs[name], server, asked[name], scale)
    said = f"{CALLERS} callers at a time; every page says how many sessions there are, so all of them are counted"
    title = f"GET /api/sessions, {scale.chats:,} sessions in an SQLite file, API on asyncio"
    return Table("api_list", title, COLUMNS, _rows(runs), [said, *notes_on(runs, "requests"), placement()])


def _fill(path: Path, count: int) -> None:
    open_store(path).close()
    engine = create_engine(f"sqlite:///{path}")
    with engine.begin() as connection:
        connection.execute(insert(CHAT_SESSIONS), [attrs.asdict(_chat(n), recurse=False) for n in range(count)])
    engine.dispose()


def _chat(number: int) -> ChatSession:
    at = BEGUN + number * 60.0
    return ChatSession(
        id=f"5f0d6c1e-2b57-4b53-9a0e-{number:012x}",
        started_at=at,
        updated_at=at + 30.5,
        last_active=at + 30.5,
        title=f"Weekend number {number}",
        model="svc-agent",
        preview="Plan a weekend in the mountains, with a hut for the night and...",
        message_count=4,
        input_tokens=910,
        output_tokens=220,
    )


def _round(runs: _Runs, server: Server, asked: bytes, scale: Scale) -> None:
    def run() -> Load:
        seconds = scale.seconds / scale.load_rounds
        load = drive(server.address, asked, callers=CALLERS, seconds=seconds, most=scale.most_requests)
        runs.latencies += load.latencies
        return load

    take_round(runs, server, run)


def _rows(runs: dict[str, _Runs]) -> Sequence[Row]:
    baseline, rows = next(iter(runs.values())), []
    for name, done in runs.items():
        latencies = sorted(done.latencies)
        values = {
            **done.figures(baseline),
            "p50_ms": percentile(latencies, 0.5) * 1e3,
            "p99_ms": percentile(latencies, 0.99) * 1e3,
            "cpu_us": done.cpu / len(latencies) * 1e6,
        }
        rows.append(Row(name, values))
    return rows
