"""Suites of nghttp2's tools against the echo: `nghttp` for requests in many forms, `h2load` for load.

Both by prior knowledge and over TLS with ALPN; h2load also in HTTP/1.1, with one load of pipelined requests.
"""

import random
import re
import subprocess
from pathlib import Path

from attrs import frozen

from tests.conformance.external_tools import FOLDER, attempt, echo_servers, program, stopping
from tests.conformance.result import Result
from tests.conformance.sse_suite import open_streams

WITHIN = 60.0  # s for one call of a tool
UPLOAD = 300_000  # bytes, more than a window
STATUS = re.compile(rb"recv \(stream_id=(\d+)\) :status: (\d+)")
FRAME = re.compile(rb"recv ([A-Z_]+) frame <length=(\d+), flags=0x([0-9a-f]+), stream_id=(\d+)>")
SENT_ERROR = re.compile(rb"send (?:GOAWAY|RST_STREAM) frame[^\n]*\n[^\n]*error_code=(?!NO_ERROR)([A-Z_]+)")
LOADED = re.compile(r"requests: (\d+) total, \d+ started, \d+ done, (\d+) succeeded, (\d+) failed, (\d+) errored")
STATUSES = re.compile(r"status codes: (\d+) 2xx, (\d+) 3xx, (\d+) 4xx, (\d+) 5xx")
BODIES = re.compile(r"\((\d+)\) data$", re.MULTILINE)
PROTOCOL = re.compile(r"Application protocol: (\S+)")
END_STREAM = 0x1


@frozen
class EchoRoute:
    """A route and its expected response; `body` is None if the body is not compared."""

    path: str
    status: int
    body: bytes | None
    options: tuple[str, ...] = ()


ROUTES = (
    EchoRoute("/", 200, b"hello\n"),
    EchoRoute("/", 200, b"", ("-H", ":method: HEAD")),
    EchoRoute("/any", 200, b"", ("-H", ":method: OPTIONS")),
    EchoRoute("/big?n=x", 400, b"n must be a number up to 67108864\n"),
    EchoRoute("/echo", 200, None, ("-H", "x-test: 1")),
    EchoRoute("/cookie", 200, b"a=1\nb=2\n", ("-H", "cookie: a=1; b=2")),
    EchoRoute("/big?n=1000000", 200, b"x" * 1_000_000),
    EchoRoute("/big?n=many", 400, b"n must be a number up to 67108864\n"),
    EchoRoute("/sse", 200, None),
    EchoRoute("/sse-open", 200, b"0\n"),
)

# Options of a request that do not change the response.
WAYS: dict[str, tuple[str, ...]] = {
    "small windows": ("-w", "10", "-W", "12"),
    "no priorities": ("--no-dep",),
    "no RFC 7540 priorities": ("--no-rfc7540-pri",),
    "weights": ("-p", "256"),
    "padding": ("-b", "255"),
    "CONTINUATION": ("--continuation",),
    "no header table": ("-c", "0"),
    "a header table made small and large": ("-c", "100", "-c", "4096"),
    "a large header table": ("-c", "64K"),
    "no header table of its own": ("--encoder-header-table-size", "0"),
}

# Options of an upload; the echo returns each body.
UPLOADS: dict[str, tuple[str, ...]] = {
    "upload": (),
    "upload, padded": ("-b", "255"),
    "upload, no Content-Length": ("--no-content-length",),
    "upload, trailers": ("--trailer", "x-one: 1", "--trailer", "x-two: 2"),
    "upload, Expect": ("--expect-continue",),
}


def nghttp(runtime: str) -> Result:
    """Send `ROUTES`, `WAYS` and `UPLOADS` with and without TLS, and check the answers; an upgrade must be ignored."""
    tool = program("nghttp")
    result = Result(f"HTTP/2, nghttp on {runtime}")
    with echo_servers(runtime) as (port, secure_port):
        base = f"http://127.0.0.1:{port}"
        _ask_all(result, tool, "h2c", base)
        _ask_all(result, tool, "h2", f"https://127.0.0.1:{secure_port}")
        with stopping(subprocess.Popen([tool, "-n", f"{base}/sse?endless"], text=True)):
            result.compare("endless", open_streams(port, 1), 1)
        result.compare("gone", open_streams(port), 0)
        upgrade = attempt([tool, "-nvu", f"{base}/"], within=WITHIN)
    told = b"HTTP/1.1 200 OK\r\n" in upgrade.stdout  # RFC 9113 section 3.1: the upgrade to h2c is obsolete
    result.note("Upgrade: h2c is not taken", None if told else _describe_result(upgrade))
    return result


def h2load(runtime: str) -> Result:
    """Send many requests on some connections; record whether all succeed, and the bodies have the right total size."""
    tool = program("h2load")
    result = Result(f"HTTP/2 and HTTP/1.1 under load, h2load on {runtime}")
    with echo_servers(runtime) as (port, secure_port):
        _load_all(result, tool, "h2c", f"http://127.0.0.1:{port}", ("-p", "http/1.1"))
        _load_all(result, tool, "h2", f"https://127.0.0.1:{secure_port}", ("--h1",))
    return result


def _ask_all(result: Result, tool: str, name: str, base: str) -> None:
    upload = _upload()
    for route in ROUTES:
        command = [tool, "-y", *route.options, f"{base}{route.path}"]
        case = f"{name}, {' '.join((*route.options, route.path))}"
        result.note(case, _problem(command, route))
    for way, options in WAYS.items():
        command = [tool, "-y", *options, f"{base}/big?n=200000"]
        result.note(f"{name}, {way}", _problem(command, EchoRoute("", 200, b"x" * 200_000)))
    for way, options in UPLOADS.items():
        command = [tool, "-y", *options, "-d", str(upload), f"{base}/up"]
        result.note(f"{name}, {way}", _problem(command, EchoRoute("", 200, upload.read_bytes())))
    many = attempt([tool, "-yns", "-m", "150", f"{base}/big?n=2000"], within=WITHIN)  # 100 may be open
    result.compare(f"{name}, 150 requests", many.stdout.count(b" 200 "), 150)
    interim = attempt([tool, "-ynv", "--expect-continue", "-d", upload, f"{base}/up"], within=WITHIN)
    result.compare(f"{name}, 100 Continue", [status for _, status in _statuses(interim)], [100, 200])


def _load_all(result: Result, tool: str, h2: str, base: str, h1: tuple[str, ...]) -> None:
    """Run all loads; `h2` is the tool's name of the HTTP/2 protocol, `h1` has the options for HTTP/1.1."""
    upload = str(_upload())
    loads: dict[str, tuple[tuple[str, ...], str, str, int]] = {
        "10 connections of 20 streams": (("-n", "1000", "-c", "10", "-m", "20"), "/", h2, 6),
        "300 streams asked for": (("-n", "1000", "-c", "2", "-m", "300"), "/", h2, 6),
        "one at a time": (("-n", "200", "-c", "5", "-m", "1"), "/", h2, 6),
        "bodies": (("-n", "200", "-c", "5", "-m", "10"), "/big?n=100000", h2, 100_000),
        "small windows": (("-n", "50", "-c", "2", "-m", "10", "-w", "12", "-W", "14"), "/big?n=50000", h2, 50_000),
        "uploads": (("-n", "100", "-c", "5", "-m", "10", "-d", upload), "/up", h2, UPLOAD),
        "HTTP/1.1": (("-n", "500", "-c", "10", *h1), "/", "http/1.1", 6),
        "HTTP/1.1, pipelined": (("-n", "500", "-c", "5", "-m", "20", *h1), "/", "http/1.1", 6),
        "HTTP/1.1, uploads": (("-n", "100", "-c", "5", "-d", upload, *h1), "/up", "http/1.1", UPLOAD),
    }
    for case, (options, path, protocol, size) in loads.items():
        done = attempt([tool, *options, f"{base}{path}"], within=WITHIN)
        n = int(options[1])
        result.note(f"{h2}, {case}", _load_problem(done, n, n * size, protocol))


def _upload() -> Path:
    path = FOLDER / "upload.bin"
    if not path.is_file() or path.stat().st_size != UPLOAD:
        FOLDER.mkdir(parents=True, exist_ok=True)
        path.write_bytes(random.Random(1).randbytes(UPLOAD))
    return path


def _problem(command: list[str], wanted: EchoRoute) -> str | None:
    """Send a request twice, once for its frames and once for its body; return the problem, or None."""
    frames = attempt([command[0], "-nv", *command[1:]], within=WITHIN)
    body = attempt(command, within=WITHIN)
    final = [(stream, status) for stream, status in _statuses(frames) if status >= 200]
    kinds = {kind for kind, _, _, _ in FRAME.findall(frames.stdout)}
    ended = [
        int(stream)
        for kind, _, flags, stream in FRAME.findall(frames.stdout)
        if kind in (b"HEADERS", b"DATA") and int(flags, 16) & END_STREAM
    ]
    if frames.returncode or body.returncode or SENT_ERROR.search(frames.stdout) or {b"RST_STREAM", b"GOAWAY"} & kinds:
        return _describe_result(frames) + _describe_result(body)
    if [status for _, status in final] != [wanted.status]:
        return f"answered {final}"
    if ended != [final[0][0]]:
        return f"the stream ended {len(ended)} times"
    if wanted.body is not None and body.stdout != wanted.body:
        return f"the body is {body.stdout!r:.100}"
    return None


def _load_problem(done: subprocess.CompletedProcess[bytes], n: int, size: int, protocol: str) -> str | None:
    told = done.stdout.decode("utf-8", "replace")
    found = [pattern.search(told) for pattern in (LOADED, STATUSES, BODIES, PROTOCOL)]
    seen = [match.groups() if match else None for match in found]
    wanted = [(str(n), str(n), "0", "0"), (str(n), "0", "0", "0"), (str(size),), (protocol,)]
    return None if not done.returncode and seen == wanted else f"{seen}, not {wanted}"


def _statuses(done: subprocess.CompletedProcess[bytes]) -> list[tuple[int, int]]:
    return [(int(stream), int(status)) for stream, status in STATUS.findall(done.stdout)]


def _describe_result(done: subprocess.CompletedProcess[bytes]) -> str:
    return f"exit code {done.returncode}, {done.stdout[-300:]!r} {done.stderr[-300:]!r}"
