"""Suite of the echo in Chromium, by playwright-core (npm), over HTTP/1.1 and HTTP/2.

It uses fetch, upload, abort, EventSource and WebSocket.
"""

import json
import tempfile
from pathlib import Path
from typing import Any

from tests.conformance.external_tools import attempt, echo_servers, npm_package, program
from tests.conformance.result import Result
from tests.conformance.sse_suite import FIVE
from tests.servers.program_process import shown_pin

HERE = Path(__file__).parent
PLAYWRIGHT = "playwright-core@1.65.1"
WITHIN = 120.0  # s for the whole page
BACK = [*([*event] for event in FIVE), ["resumed", "3", "3"]]
EXTENSIONS = "permessage-deflate; client_max_window_bits=12"
STREAMED = "one two three"


def chromium(runtime: str) -> Result:
    """Run the browser's checks over HTTP/1.1 and over HTTP/2."""
    browser = program("chromium", "chromium-browser", "chromium-headless-shell")
    node, modules = program("node"), npm_package(PLAYWRIGHT)
    result = Result(f"Chromium by {PLAYWRIGHT} on {runtime}")
    with echo_servers(runtime) as (port, secure_port):
        for version, protocol, url, pin in (
            ("1.1", "http/1.1", f"http://127.0.0.1:{port}", ""),
            ("2", "h2", f"https://127.0.0.1:{secure_port}", shown_pin(secure_port).removeprefix("sha256/")),
        ):
            with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
                command: list[str | Path] = [node, HERE / "client_chromium.cjs", browser, profile, pin, url]
                done = attempt(command, within=WITHIN, env={"NODE_PATH": str(modules)})
            if done.returncode:
                result.note(f"HTTP/{version}", f"exit code {done.returncode}: {done.stderr[-1000:]!r}")
                continue
            _judge(result, version, protocol, json.loads(done.stdout))
    return result


def _judge(result: Result, version: str, protocol: str, told: dict[str, Any]) -> None:
    socket = {
        "heard": [version, "é", [500_000, True], [1_000_000, True], ""],
        "extensions": EXTENSIONS,
        "closed": [3001, "", True],
    }
    wanted: dict[str, object] = {
        "page": [200, "hello\n"],
        "fetch": {
            "big": [1_000_000, ""],
            "field": True,
            "head": [200, "6", ""],
            "lost": 400,
            "cookies": "one=1\ntwo=2\n",
            "many": True,
            "protocols": [protocol],
        },
        "upload": {"whole": True, "form": ["a.bin", 300_000]},
        "streamed": STREAMED if version == "2" else None,  # Chromium streams an upload over HTTP/2 only
        "abort": {
            "first": "event: tick\ndata: tick\n\n",
            "before": 1,
            "error": "AbortError",
            "early": "AbortError",
            "after": 0,
            "fine": 200,
        },
        "events": BACK,
        "slow": BACK,
        "endless": [["tick", "tick", ""]],
        "socket": socket,
        "again": socket,
    }
    for name, value in wanted.items():
        result.compare(f"HTTP/{version}, {name}", told.get(name), value)
