"""Firefox without a screen, driven by WebDriver BiDi: <https://w3c.github.io/webdriver-bidi/>."""

from __future__ import annotations

import json
import re
import socket
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from shutil import which
from subprocess import DEVNULL, PIPE, Popen
from typing import Any

from wsproto import ConnectionType, WSConnection
from wsproto.events import AcceptConnection, Message, Request, TextMessage

__all__ = ["FIREFOX", "FirefoxPage", "open_firefox"]

FIREFOX = which("firefox-esr") or which("firefox")
PATIENCE = 60.0  # s, also on a busy machine


class FirefoxPage:
    """A tab of Firefox, and the entries of its console."""

    def __init__(self, port: int) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port), PATIENCE)
        self._frames = WSConnection(ConnectionType.CLIENT)
        self._events: list[Any] = []
        self._parts = ""
        self._id = 0
        self.console: list[str] = []
        self._socket.sendall(self._frames.send(Request(host=f"127.0.0.1:{port}", target="/session")))
        assert isinstance(self._next(), AcceptConnection)
        self.call("session.new", capabilities={})
        self.call("session.subscribe", events=["log.entryAdded"])
        self._context = self.call("browsingContext.getTree")["contexts"][0]["context"]

    def call(self, method: str, **params: Any) -> Any:
        """Send a command and return its result; add entries of the log that arrive meanwhile to `console`."""
        self._id += 1
        text = json.dumps({"id": self._id, "method": method, "params": params})
        self._socket.sendall(self._frames.send(Message(data=text)))
        while True:
            event = self._next()
            if not isinstance(event, TextMessage):
                continue
            self._parts += event.data
            if not event.message_finished:
                continue
            answer, self._parts = json.loads(self._parts), ""
            if answer.get("method") == "log.entryAdded":
                self.console.append(f"{answer['params']['level']}: {answer['params']['text']}")
            elif answer.get("id") == self._id:
                assert answer["type"] == "success", answer
                return answer["result"]

    def open(self, url: str) -> None:
        self.call("browsingContext.navigate", context=self._context, url=url, wait="complete")

    def resize(self, width: int, height: int) -> None:
        viewport = {"width": width, "height": height}
        self.call("browsingContext.setViewport", context=self._context, viewport=viewport)

    def evaluate(self, expression: str) -> Any:
        """Return the value of an expression, which must be text, a number, a truth value or null."""
        target = {"context": self._context}
        answer = self.call("script.evaluate", expression=expression, target=target, awaitPromise=True)
        assert answer["type"] == "success", answer
        return answer["result"].get("value")

    def wait_until(self, expression: str) -> None:
        """Wait until an expression is true."""
        until = time.monotonic() + PATIENCE
        while self.evaluate(f"!!({expression})") is not True:
            assert time.monotonic() < until, f"not true: {expression}; {self.evaluate('document.body.innerText')}"

    def type(self, text: str) -> None:
        """Press and release the key of each character."""
        keys = [{"type": kind, "value": sign} for sign in text for kind in ("keyDown", "keyUp")]
        actions = [{"type": "key", "id": "keyboard", "actions": keys}]
        self.call("input.performActions", context=self._context, actions=actions)

    def close(self) -> None:
        self._socket.close()

    def _next(self) -> Any:
        while not self._events:
            self._frames.receive_data(self._socket.recv(65_536))
            self._events = list(self._frames.events())
        return self._events.pop(0)


@contextmanager
def open_firefox(profile: Path) -> Iterator[FirefoxPage]:
    """Run Firefox with this profile's folder, and yield its tab."""
    command = [FIREFOX or "", "--headless", "--no-remote", "--remote-debugging-port", "0", "--profile", str(profile)]
    with Popen(
        command, stdout=DEVNULL, stderr=PIPE, text=True, env={"HOME": str(profile), "PATH": "/usr/bin:/bin"}
    ) as program:
        try:
            assert program.stderr is not None
            found = next(filter(None, (re.search(r"BiDi listening on ws://.*:(\d+)", line) for line in program.stderr)))
            with closing(FirefoxPage(int(found[1]))) as page:
                yield page
        finally:
            program.kill()
