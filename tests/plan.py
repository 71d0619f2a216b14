"""Which story runs where, and why. docs/testing.md shows this table.

What can differ between loops runs on each of them: sockets that half-close, break, back up or never read; TLS;
descriptors, children, signals, threads and files. What the core alone decides is the same bytes in and the same bytes
out wherever it runs, so it runs once, in the simulator. Between the two is what needs a real host, whichever its loop.
With `--full`, and on loops that are named by `--loop`, everything runs on each.

What the simulator tells of one relay, and of one API server, it tells of three nodes of each, too (`--loop nodes`), but
for the rows of `NODES`.

`threads` is the host, which all loops have, on a bare selector: it tells what its eight orders alone could make differ.
"""

from __future__ import annotations

from enum import Enum
from fnmatch import fnmatchcase
from typing import TypeVar

import pytest
from _pytest.mark import ParameterSet
from attrs import frozen

AnyRow = TypeVar("AnyRow", "Row", "NodesRow")

__all__ = ["NODES", "PLAN", "AsNodes", "NodesRow", "Row", "Where", "nodes_row_of", "row_of", "some"]


class Where(Enum):
    """The worlds of a story; a story that only one kind of world can tell keeps to that kind."""

    ALL = "every loop, threads, simulator"
    EVERY = "every loop, simulator"
    ONE = "asyncio, simulator"
    SIM = "simulator"


class AsNodes(Enum):
    """How a story of the simulator is told of three nodes; without a row, with each connection at another of them."""

    KEPT = "always; a client keeps to the node that it found first"
    LATER = "with `--full`, or if it is named"
    NEVER = "never"


@frozen
class Row:
    """Stories by name, `module` or `module::test*`; the first row that fits counts."""

    stories: tuple[str, ...]
    where: Where
    why: str


ALL, EVERY, ONE, SIM = Where.ALL, Where.EVERY, Where.ONE, Where.SIM

PLAN = (
    Row(
        (
            "test_http::test_health",
            "test_http::test_a_connection_is_kept",
            "test_http::test_a_pipelined_flood_is_worked_off",
            "test_http::test_a_flood_from_someone_who_does_not_read*",
            "test_http::test_a_request_in_single_bytes",
            "test_http::test_a_chunked_upload",
            "test_http::test_a_body_of_the_greatest_size",
            "test_http::test_a_peer_that_*",
            "test_http::test_200_connections_at_once",
            "test_http::test_connections_that_break*",
        ),
        ALL,
        "bytes in every rhythm, ends of every kind, many sockets at once",
    ),
    Row(("test_http",), SIM, "heads, bodies and refusals are the core's"),
    Row(
        (
            "test_http2::test_many_at_the_same_time",
            "test_http2::test_a_file_and_its_ranges",
            "test_http2::test_tls_with_alpn",
        ),
        EVERY,
        "ALPN, files, and streams that share a socket",
    ),
    Row(("test_http2",), SIM, "frames and their meaning are the core's"),
    Row(
        (
            "test_websocket::test_a_socket_in_single_bytes",
            "test_websocket::test_a_close_is_echoed",
            "test_websocket::test_a_message_over_the_cap",
            "test_websocket::test_a_message_just_under_the_cap",
            "test_websocket::test_a_flood_of_pings",
        ),
        EVERY,
        "large messages, closing handshakes, floods",
    ),
    Row(("test_websocket",), SIM, "frames and their meaning are the core's"),
    Row(("test_secure", "test_slow_clients", "test_life"), ALL, "TLS, IPv6, slow readers, stops, kills and restarts"),
    Row(("test_client::test_a_server_that_shares*",), ONE, "Node's HTTP/2 server; the loop's part is told beside it"),
    Row(("test_client",), ALL, "connections that are opened, with TLS and without"),
    Row(
        ("test_load_descriptors", "test_load_slow::test_tls*", "test_load_slow::test_a_reader*"),
        ALL,
        "no more descriptors, handshakes that stall, peers that do not read",
    ),
    Row(
        ("test_load", "test_load_slow", "test_load_strangers"),
        ONE,
        "crowds: the same sockets as elsewhere, by the thousand",
    ),
    Row(
        (
            "test_media::test_a_hundred_mebibytes*",
            "test_media::test_an_upload_that_breaks_off*",
            "test_media::test_a_file_over_tls",
            "test_media::test_a_screenshot*",
        ),
        EVERY,
        "files out and in, past the core and through TLS",
    ),
    Row(("test_media",), ONE, "races on a real disk, and memory; the rules are the core's"),
    Row(("test_inbox::test_many_pastes*",), EVERY, "many files written at once"),
    Row(("test_inbox",), SIM, "formats and rights are the core's"),
    Row(
        (
            "test_bridge::test_the_reference_phone_answers",
            "test_bridge::test_pipelined*",
            "test_bridge::test_a_phone_that_goes*",
            "test_bridge::test_a_phone_that_comes_back*",
            "test_bridge::test_a_caller_that_half_closes*",
            "test_bridge::test_big_answers*",
            "test_bridge::test_a_phone_that_reads_nothing*",
            "test_bridge::test_both_sides_send_much*",
        ),
        EVERY,
        "two sockets that depend on each other: ends, half-closes, backpressure",
    ),
    Row(("test_bridge",), SIM, "selectors, answers and deadlines are the core's"),
    Row(("test_mcp_servers",), ALL, "programs that are bad MCP servers: pipes that flood, and their ends"),
    Row(
        ("test_mcp",),
        EVERY,
        "a call that ends with its connection, events between requests, pictures of the disk, floods and deaf readers",
    ),
    Row(
        (
            "test_access::test_the_end_of_a_session*",
            "test_access::test_a_new_profile*",
            "test_grants::test_a_withheld*",
        ),
        EVERY,
        "sockets that the relay ends by itself; folders that a thread watches; what a store keeps",
    ),
    Row(("test_doors",), EVERY, "who gets in, asked of relays as they run: whom a loop says that it is"),
    Row(("test_doors_kept",), ONE, "the same of API and dashboard, which are told the same by each loop"),
    Row(("test_device_keys",), EVERY, "two servers in one process, what one ends at the other, kills and restarts"),
    Row(("test_cluster::test_when_sentinels*",), ONE, "Redis's own Sentinels, which take their time"),
    Row(
        ("test_cluster", "test_api_nodes"),
        ALL,
        "two relays, or two API servers, and a Redis of the system; the simulator has storms of its own",
    ),
    Row(
        ("test_access", "test_grants", "test_pairing", "test_routes", "test_safety"),
        SIM,
        "who may do what, and which input is refused, is the core's",
    ),
    Row(
        ("test_phone::test_the_phone_finds*", "test_phone::test_a_screenshot*", "test_phone::test_many_callers*"),
        EVERY,
        "routes that fail and come back, pictures, many callers at once",
    ),
    Row(("test_phone",), SIM, "what a route does to the handset is the core's"),
    Row(
        ("test_hostile::test_half*", "test_hostile::test_one_connection*"),
        EVERY,
        "connections that break, one too many",
    ),
    Row(("test_hostile",), SIM, "garbage is the core's to refuse"),
    Row(
        (
            "test_api::test_a_turn_of_a_model*",
            "test_api::test_sessions_outlive_a_kill",
            "test_api::test_a_client_that_goes_away*",
            "test_api::test_a_stop_in_the_middle*",
            "test_api_events::test_a_client_that_drops*",
            "test_api_stories::test_a_model_drives_the_phone",
        ),
        EVERY,
        "a model that is called, readers that leave, stops and kills: all parts at once",
    ),
    Row(
        ("test_api", "test_api_events", "test_api_refusals", "test_api_stories"),
        SIM,
        "order and shape of events, and refusals, are the core's",
    ),
    Row(("test_api_streams::test_beyond*",), SIM, "turns that wait for their place are the core's"),
    Row(("test_api_streams", "test_openai"), ONE, "200 streams, memory, clients that are not ours"),
    Row(("test_dashboard::test_what_there_is*",), EVERY, "all four programs at once"),
    Row(("test_dashboard",), SIM, "what is shown, and to whom, is the core's"),
    Row(
        (
            "test_terminal::test_a_shell",
            "test_terminal::test_its_size*",
            "test_terminal::test_control_c*",
            "test_terminal::test_the_relay_stops",
            "test_terminal::test_20000_lines*",
            "test_terminal::test_a_megabyte_pasted",
            "test_terminal::test_a_shell_that_does_not_read*",
            "test_terminal::test_abrupt*",
        ),
        ALL,
        "ptys: sizes, signals, floods both ways, children that are left",
    ),
    Row(("test_terminal",), ONE, "real shells, and what tmux makes of them"),
    Row(
        (
            "test_tui::test_a_chat",
            "test_tui::test_lines_of_five*",
            "test_tui::test_a_gateway_that_exits*",
            "test_tui::test_a_flood*",
        ),
        ALL,
        "pipes: long lines, floods, ends, signals",
    ),
    Row(("test_tui",), ONE, "real gateways as programs"),
    Row(
        (
            "test_voice_sockets::test_a_socket_that_breaks*",
            "test_voice_agent::test_a_provider_that_drops*",
        ),
        EVERY,
        "sockets that break",
    ),
    Row(
        (
            "test_voice_agent::test_a_person_talks*",
            "test_voice_agent::test_speech_becomes*",
            "test_voice::test_a_vendor*",
            "test_voice::test_a_sentence*",
            "test_voice::test_a_command*",
        ),
        ONE,
        "this host's engines and vendors' sockets",
    ),
    Row(
        ("test_voice", "test_voice_agent", "test_voice_sockets"),
        SIM,
        "sessions, settings and runs are the core's",
    ),
)


@frozen
class NodesRow:
    """The same of stories that three nodes tell otherwise."""

    stories: tuple[str, ...]
    how: AsNodes
    why: str


KEPT, LATER, NEVER = AsNodes.KEPT, AsNodes.LATER, AsNodes.NEVER

NODES = (
    NodesRow(
        ("test_hostile::test_one_connection_too_many*",),
        NEVER,
        "each node has limits of its own: connections, and what is kept of them",
    ),
    NodesRow(("test_mcp::test_a_session",), NEVER, "a picture in an MCP answer has to be at the node that was asked"),
    NodesRow(("test_media::test_what_can_be_fetched*",), KEPT, "the list is of the node's own files"),
    NodesRow(("test_http2::test_tls_with_alpn",), KEPT, "sockets are counted where they are"),
    NodesRow(
        ("test_http*", "test_websocket", "test_client"),
        LATER,
        "bytes of one connection, which is at one node whoever the others are",
    ),
    NodesRow(("test_routes",), LATER, "700 refusals of one request each; `test_doors` tells all doors of three nodes"),
    NodesRow(
        ("test_openai", "test_api_streams::test_m*", "test_api_streams::test_clients*", "test_api_kill"),
        NEVER,
        "clients and processes that are not simulated; `tests/servers/test_api_nodes.py` has three real ones",
    ),
    NodesRow(
        ("test_mcp_servers", "test_tui", "test_terminal", "test_load*"),
        NEVER,
        "programs, and sockets by the thousand: at one node; `tests/servers/test_nodes.py` loads three real ones",
    ),
)


def nodes_row_of(module: str, test: str) -> NodesRow | None:
    """What is said of a story of three nodes, the first that fits."""
    return _first(NODES, module, test)


def some(seeds: range) -> list[ParameterSet]:
    """The first third of these parameters, and the others as what only repeats."""
    repetition = pytest.mark.repetition
    third = -(-len(seeds) // 3)
    return [pytest.param(seed, marks=() if at < third else repetition) for at, seed in enumerate(seeds)]


def row_of(module: str, test: str) -> Row | None:
    """The row of a story; None for one that is not planned, which runs wherever it can."""
    return _first(PLAN, module, test)


def _first(rows: tuple[AnyRow, ...], module: str, test: str) -> AnyRow | None:
    names = (module, f"{module}::{test}")
    return next((row for row in rows if any(fnmatchcase(name, each) for each in row.stories for name in names)), None)
