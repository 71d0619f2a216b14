"""Tests that run every section of the benchmarks once, with minimal load: the figures are plausible."""

import json
from importlib.util import find_spec
from math import inf
from pathlib import Path

import pytest
from attrs import evolve
from click.testing import CliRunner

from bench import __main__ as program
from bench import api, contestants, gateway, http2, words
from bench.api import api_section
from bench.contestants import BRIDGES, NULL, RELAYS, Contestant, running
from bench.core import core_section
from bench.http2 import HYPERCORNS, find_h2load, http2_section
from bench.mcp import mcp_section
from bench.measure import QUICK, BenchError, Progress
from bench.media import media_section
from bench.memory import memory_section
from bench.nodes import find_redis, nodes_section
from bench.pairings import STORES, pairings_section
from bench.peers_nginx import find_nginx
from bench.report import Table
from bench.simulation import simulation_section
from bench.sockets import sockets_section
from bench.starts import starts_section
from bench.terminal import terminal_section
from bench.tokens import tokens_section
from bench.voice import FLOOR, STRAIGHT, voice_section
from bench.websocket import ECHO_PEERS, ECHOES, websocket_section
from bench.words import mistakes, words_section
from tests.voice.recordings import CLEAR_VOICE, needs_engines

TINY = evolve(
    QUICK,
    cycles=5,
    rounds=2,
    seconds=0.1,
    load_rounds=1,
    connections=4,
    repeats=1,
    phones=(5,),
    most_requests=50,
    terminal_bytes=100_000,
    file_bytes=200_000,
    deltas=20,
    streams=(2,),
    background=2,
    held=3,
    sessions=30,
    chats=120,
    worlds=1,
    listeners=3,
    sentences=1,
)
SILENT = Progress(silent=True)
ABSENT = Contestant("bare absent", ("bench.peers_absent",), ("no_such_package_at_all",))
LEFT_OUT = "left out, not installed: bare absent"


def check(table: Table, rows: int, *positive: str, note: str | None = None) -> None:
    """Check the number of rows, that no figure is negative and those named are not 0, and that a note is there."""
    keys = {column.key for column in table.columns}
    assert len(table.rows) == rows
    for row in table.rows:
        assert row.values.keys() <= keys
        assert all(value >= 0 for value in row.values.values())
        assert all(row.values[name] > 0 for name in positive)
        assert row.values.get("p50_ms", 0) <= row.values.get("p99_ms", inf)
    assert note is None or note in table.notes


def test_core() -> None:
    (table,) = core_section(TINY, SILENT)
    check(table, 10)
    assert table.rows[0].values["ratio"] == 1.0
    assert all(note.startswith(("PASS: ", "MISS: ")) for note in table.notes[:2])


def test_mcp() -> None:
    calls, memory = mcp_section(TINY, SILENT, relays=RELAYS[:1])
    check(calls, 6)
    assert calls.rows[0].values["cpu_ratio"] in (0.0, 1.0)
    check(memory, 1)


def test_sockets() -> None:
    health, close, keep_alive, *bridge = sockets_section(
        TINY, SILENT, relays=RELAYS[:1], peers=(ABSENT, NULL), bridges=(ABSENT,)
    )
    assert [table.section for table in bridge] == ["bridge_1", "bridge_32", "bridge_64"]
    for table in (health, close, keep_alive, *bridge):
        check(table, 1 + table.section.startswith("health"), "per_second", "p50_ms", note=LEFT_OUT)


@pytest.mark.skipif(find_spec("aiohttp") is None, reason="aiohttp is not installed")
def test_a_bridge_compared_with_a_bare_one() -> None:
    _, _, _, *bridge = sockets_section(TINY, SILENT, relays=RELAYS[:1], peers=(), bridges=BRIDGES[:1])
    for table in bridge:
        check(table, 2)


def test_pairings() -> None:
    (table,) = pairings_section(TINY, SILENT, relays=(STORES[0], ABSENT))
    check(table, 1, "per_second", note=LEFT_OUT)


@pytest.mark.skipif(find_redis() is None, reason="neither Redis nor Valkey is installed")
def test_nodes() -> None:
    *trips, hearing, crowd = nodes_section(TINY, SILENT, groups=(2,), phones=(10,), crowds=((9, 2),))
    assert [table.section for table in trips] == ["nodes_1", "nodes_32"]
    for table in trips:
        check(table, 3)
    check(hearing, 1, "came_us")
    check(crowd, 1, "p50_ms")


@pytest.mark.skipif(find_h2load() is None, reason="h2load is not installed")
def test_http2() -> None:
    tables = http2_section(TINY, SILENT, relays=RELAYS[:1], peers=(ABSENT,))
    assert [table.section for table in tables] == ["http2_1x32", "http2_32x1"]
    for table in tables:
        check(table, 1, "per_second", "p50_ms", note=LEFT_OUT)


@pytest.mark.skipif(find_h2load() is None, reason="h2load is not installed")
@pytest.mark.skipif(find_spec("hypercorn") is None, reason="hypercorn is not installed")
def test_http2_beside_hypercorn() -> None:
    for table in http2_section(TINY, SILENT, relays=RELAYS[:1], peers=HYPERCORNS[:1]):
        check(table, 2, "per_second")


@pytest.mark.skipif(find_h2load() is None, reason="h2load is not installed")
def test_answers_that_are_not_200_are_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http2, "PATH", "/nothing")
    with pytest.raises(BenchError, match=r"^relay, asyncio under h2load: requests: .* 0 succeeded"):
        http2_section(TINY, SILENT, relays=RELAYS[:1], peers=())


def test_websocket() -> None:
    one, sixteen = websocket_section(TINY, SILENT, echoes=ECHOES[:1], peers=(ABSENT,))
    assert (one.section, sixteen.section) == ("websocket_1", "websocket_16")
    for table in (one, sixteen):
        check(table, 1, "per_second", note=LEFT_OUT)


@pytest.mark.parametrize("peer", ECHO_PEERS, ids=lambda peer: peer.name)
def test_websocket_beside_others(peer: Contestant) -> None:
    if not contestants.available((peer,)):
        pytest.skip(f"not installed: {' or '.join(peer.needs)}")
    for table in websocket_section(TINY, SILENT, echoes=ECHOES[:1], peers=(peer,)):
        check(table, 2, "per_second")


def test_a_server_that_does_not_echo_is_an_error() -> None:
    relay = RELAYS[0]  # it opens the socket and requires authentication
    with pytest.raises(BenchError, match=r"^relay, asyncio did not echo: "):
        websocket_section(TINY, SILENT, echoes=(relay,), peers=())


def test_terminal() -> None:
    (table,) = terminal_section(TINY, SILENT, relays=(*RELAYS[:1], ABSENT))
    check(table, 2, "mb_per_second", note=LEFT_OUT)
    assert [row.name for row in table.rows] == ["relay, asyncio", "bare pty read loop"]


def test_media() -> None:
    nginx = find_nginx()
    (table,) = media_section(TINY, SILENT, relays=RELAYS[:1], peers=("asyncio",))
    check(table, 1 + (find_spec("aiohttp") is not None) + (nginx is not None), "mb_per_second")


@pytest.mark.full  # like the other sections, but it starts eleven servers
def test_api(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(api, "PACED_FOR", 0.3)
    monkeypatch.setattr(api, "PROBES", 3)
    monkeypatch.setattr(api, "SETTLE", 0.05)
    monkeypatch.setattr(gateway, "SETTLE", 0.05)
    streams, turns, paced, first, lists, held, of_gateway = api_section(TINY, SILENT, loops=("asyncio",))
    with_peers = all(find_spec(package) is not None for package in ("starlette", "uvicorn", "httpx"))
    for table in (streams, turns, paced, first):
        check(table, 3 if with_peers else 1)
        assert ("left out, not installed: Starlette and httpx, proxy" in table.notes) is not with_peers
    check(lists, 4)
    check(held, 2 if with_peers else 1)
    check(of_gateway, 1)
    assert all(row.values["per_second"] > 0 for table in (streams, lists) for row in table.rows)
    assert all(row.values["p50_ms"] > 0 for row in paced.rows)
    assert all(row.values["idle_p50_ms"] > 0 for row in first.rows)


@pytest.mark.full  # like the other sections, but it starts programs
def test_starts() -> None:
    (table,) = starts_section(TINY, SILENT, relays=RELAYS[:1], others=(), peers=(ABSENT,))
    check(table, 7, note=LEFT_OUT)


def test_memory() -> None:
    (table,) = memory_section(TINY, SILENT, relays=(*RELAYS[:1], ABSENT))
    (row,) = table.rows
    assert row.values.keys() == {column.key for column in table.columns}
    assert row.values["all_mib"] >= row.values["one_mib"] > 1
    assert LEFT_OUT in table.notes


def test_a_server_that_does_not_start_is_one_clear_error() -> None:
    broken = Contestant("broken", ("bench.no_such_module",))
    with pytest.raises(BenchError, match=r"broken did not start: .*no_such_module"), running(broken):
        pass


def test_the_command_prints_tables_and_writes_json(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(program, "QUICK", TINY)
    target = tmp_path / "figures.json"
    done = CliRunner().invoke(program.main, ["--quick", "--section", "core", "--json", str(target)])
    assert done.exit_code == 0, done.output
    assert "The core, no socket" in done.output
    document = json.loads(target.read_text())
    assert document["tables"][0]["section"] == "core"
    assert document["machine"]["cores"] >= 1


@pytest.mark.full  # like tests/fuzz
def test_simulation() -> None:
    (table,) = simulation_section(TINY, SILENT)
    check(table, len(table.rows), "events_per_second")
    assert table.rows[0].name == "one process"


def test_tokens() -> None:
    (table,) = tokens_section(TINY, SILENT)
    figures = {row.name: row.values for row in table.rows}
    assert figures["tools, few"]["tokens"] < figures["tools"]["tokens"]
    assert figures["ten steps"]["requests"] == 12


def test_voice() -> None:
    firsts, streams = voice_section(TINY, SILENT, relays=RELAYS[:1])
    assert {row.name for row in firsts.rows} - {"relay, asyncio, local", FLOOR} == {"relay, asyncio, stub"}
    check(firsts, len(firsts.rows))
    assert [row.name for row in streams.rows] == ["relay, asyncio", STRAIGHT]
    check(streams, 2)
    assert all(row.values["pieces"] == 6 for row in streams.rows)


@needs_engines
def test_word_error_rates(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(words, "VOICES", [CLEAR_VOICE])
    (table,) = words_section(TINY, SILENT)
    assert {row.name.partition(":")[0] for row in table.rows} <= {"Whisper", "pocketsphinx"}
    assert all(0 <= row.values["wrong_percent"] <= 200 for row in table.rows)
    assert all(row.values["cpu_s"] > 0 for row in table.rows)
    assert table.rows


@pytest.mark.parametrize(
    ("said", "heard", "wrong"),
    [
        ("turn it on", "Turn it on.", 0),
        ("turn it on", "turn on", 1),
        ("turn it on", "turn it on now", 1),
        ("turn it on", "burn it on", 1),
        ("turn it on", "", 3),
        ("it's ten o'clock", "It's ten: o'clock!", 0),
    ],
)
def test_counting_wrong_words(said: str, heard: str, wrong: int) -> None:
    assert mistakes(said, heard) == (wrong, 3)
