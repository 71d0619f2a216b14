"""Suite of three relays with many stored sessions: start, memory, pages, and recovery from killed servers."""

import json
import secrets
import time
from urllib.parse import quote

import psutil

from tests.conformance.cluster_suite import running_cluster
from tests.conformance.result import Result
from tests.servers.program_process import call
from tests.servers.relay_cluster import RelayCluster, until

NODES = 3
SESSIONS = 100_000
START = 5.0  # s until a node accepts connections
WHOLE = 5.0  # s after the return of a server until every node registers codes
MEMORY = 150 * 2**20, 1_000  # bytes of a node, and of each of its sessions
PAGE = 0.01  # s of processor time for a page of `GET /sessions`
LIMIT = 200  # sessions of a page
CHANNELS = ("chat", "bridge", "terminal", "tui", "voice:config", "voice:stt")
CODE_LETTERS = "ABCDEFGHJKLMNPQRSTUVWXYZ23456789"
RECORD = {
    "token_prefix": "PREFIX__",
    "device_name": "Phone",
    "created_at": 1.8e9,
    "expires_at": "never",
    "grants": dict.fromkeys(CHANNELS, "never"),
    "rights": ["manage", "files", "notifications"],
    "given": {"ttl_seconds": 0.0, "grants": dict.fromkeys(CHANNELS, 0.0)},
}
# The change of each is not recorded: these sessions are older than the recorded changes.
FILL = """
ALTER TABLE paired_sessions DISABLE TRIGGER paired_sessions_change;
INSERT INTO paired_sessions (token_hash, record, updated_at)
    SELECT md5(n::text) || md5((-n)::text), replace('{record}', 'PREFIX__', substr(md5(n::text), 1, 8)), ''
    FROM generate_series(1, {count}) n;
ALTER TABLE paired_sessions ENABLE TRIGGER paired_sessions_change
"""


def _process(cluster: RelayCluster, n: int) -> psutil.Process:
    node = cluster.nodes[n]
    assert node is not None
    return psutil.Process(node.process.pid)


def _memory(cluster: RelayCluster, n: int) -> int:
    return _process(cluster, n).memory_info().rss


def _cpu(cluster: RelayCluster, n: int) -> float:
    return sum(_process(cluster, n).cpu_times()[:2])


def _log_count(cluster: RelayCluster, n: int, event: str) -> int:
    return (cluster.folder / f"node-{n}" / "svc" / "log" / "relay.log").read_text().count(event)


def _registers(port: int) -> bool:
    code = "".join(secrets.choice(CODE_LETTERS) for _ in range(6))
    try:
        return call(port, "POST", "/pairing/register", {"code": code}).status == 200
    except OSError:
        return False


def _list_all(port: int) -> tuple[int, int]:
    """Read all sessions of the relay in pages; return the numbers of pages and of sessions."""
    pages = sessions = 0
    cursor = ""
    while cursor or not pages:
        path = f"/sessions?limit={LIMIT}" + (f"&cursor={quote(cursor)}" if cursor else "")
        body = call(port, "GET", path).body
        pages, sessions, cursor = pages + 1, sessions + len(body["sessions"]), body.get("next_cursor", "")
    return pages, sessions


def many_sessions(_: str = "", *, sessions: int = SESSIONS) -> Result:
    """Start three nodes with many stored sessions, list these, and kill Redis, PostgreSQL and a node.

    Raise Unavailable if a program is not installed.
    """
    result = Result("cluster-sessions")
    with running_cluster() as cluster:
        for n in range(NODES):
            cluster.stop(n)
        cluster.execute(FILL.format(record=json.dumps(RECORD), count=sessions))
        starts, whole = [], []
        loads = [_log_count(cluster, n, "sessions loaded") for n in range(NODES)]
        for n in range(NODES):
            began = time.monotonic()
            cluster.start_node(n)
            starts.append(time.monotonic() - began)
        for n in range(NODES):
            until(lambda n=n: _log_count(cluster, n, "sessions loaded") > loads[n], "all sessions are read")  # type: ignore[misc]
        memory = max(_memory(cluster, n) for n in range(NODES))
        began_cpu = _cpu(cluster, 0)
        pages, listed = _list_all(cluster.ports[0])
        page = (_cpu(cluster, 0) - began_cpu) / pages
        growth = _memory(cluster, 0) - memory

        def recover(server: str) -> None:
            began = time.monotonic()
            for port in cluster.ports:
                until(lambda port=port: _registers(port), f"{server} is back")  # type: ignore[misc]
            whole.append(time.monotonic() - began)

        cluster.redis.kill()
        cluster.redis.start()
        recover("Redis")
        cluster.store.stop("immediate")
        cluster.store.start()
        recover("PostgreSQL")
        cluster.kill(0)
        cluster.start_node(0)
        recover("a node")
        losses = [_log_count(cluster, n, "cluster lost") for n in range(1, NODES)]
    base, each = MEMORY
    result.compare("nodes that started too late", [start for start in starts if start > START], [])
    result.note("memory of a node", None if memory < base + each * sessions else f"{memory:,} bytes")
    result.compare("listed sessions", listed, sessions)
    result.note("time of a page", None if page < PAGE else f"{page * 1000:.1f} ms")
    result.note("memory for the pages", None if growth < 8 * 2**20 else f"{growth:,} bytes more")
    result.compare("recoveries that took too long", [each for each in whole if each > WHOLE], [])
    result.compare("connections lost, except with Redis", [count for count in losses if count > 1], [])
    result.figures = (
        f"{sessions:,} sessions, starts {', '.join(f'{start:.1f}' for start in starts)} s, {memory / 2**20:.0f} MiB, "
        f"{page * 1000:.1f} ms a page, whole after {', '.join(f'{wait:.2f}' for wait in whole)} s"
    )
    return result
