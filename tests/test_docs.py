"""What the documents show is run: the small runtime of docs/runtimes.md serves a real connection."""

from __future__ import annotations

import re
import socket
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent


def example() -> Callable[[socket.socket], None]:
    (code,) = re.findall(r"```python\n(import os\n.*?)```", (ROOT / "docs/runtimes.md").read_text(), re.DOTALL)
    names: dict[str, Any] = {}
    exec(compile(code, "docs/runtimes.md", "exec"), names)
    serve: Callable[[socket.socket], None] = names["serve_one"]
    return serve


def test_the_runtime_of_the_documentation_serves() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=example(), args=(listener,), daemon=True)
        thread.start()
        with socket.create_connection(listener.getsockname(), timeout=10.0) as peer:
            peer.sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n")
            assert peer.recv(65536).startswith(b"HTTP/1.1 200 OK\r\n")
            peer.sendall(b"POST /pairing HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n")
            assert b'"code"' in peer.recv(65536)
            peer.sendall(b"GET /nope HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
            answer = b""
            while piece := peer.recv(65536):
                answer += piece
            assert b"404 Not Found" in answer
        thread.join(10.0)
        assert not thread.is_alive()


def test_every_link_of_the_documents_leads_somewhere() -> None:
    for page in [*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")]:
        for target in re.findall(r"\]\((?!https?:|#)([^)#]+)", page.read_text()):
            assert (page.parent / target).exists(), f"{page.name} links to {target}"
