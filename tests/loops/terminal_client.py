"""Test client of the terminal channel: it attaches, types and waits for output."""

import re
from itertools import count
from typing import Any

from tests.loops.clients import PATIENCE, WebSocketTestClient

ESCAPES = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[()][0-9A-B]|[=>78cM])")
NUMBERS = count(1)  # of commands of all clients: a second client also gets the output of the first


class TerminalClient:
    """Terminal client on one WebSocket; `screens` has each terminal's output that no call has returned yet."""

    def __init__(self, ws: WebSocketTestClient) -> None:
        self.ws = ws
        self.screens: dict[str, str] = {}
        self.news: list[dict[str, Any]] = []  # all messages except output

    def send(self, kind: str, **payload: object) -> None:
        self.ws.send_envelope("terminal", f"terminal.{kind}", payload, "t")

    def attach(self, name: str = "main", **payload: object) -> dict[str, Any]:
        """Attach to a terminal session; return the payload of `terminal.attached`."""
        self.screens[name] = ""
        self.send("attach", session_name=name, shell="/bin/sh", **payload)
        answer = self.receive("attached", "error")
        assert answer["type"] == "terminal.attached", answer
        found: dict[str, Any] = answer["payload"]
        return found

    def type(self, text: str, name: str = "main") -> None:
        self.send("input", session_name=name, data=text)

    def run(self, command: str, name: str = "main", timeout: float = PATIENCE) -> str:
        """Run a command; return the terminal's output up to its end, without escape sequences."""
        number = next(NUMBERS)
        self.type(f"{command}; echo 'of''f'-{number}-\r", name)
        return self.until(f"off-{number}-(\r?\n)?", name, timeout)

    def until(self, pattern: str, name: str = "main", timeout: float = PATIENCE) -> str:
        """Wait until a terminal has shown a pattern; return its output up to there, without escape sequences."""
        pieces = [self.screens[name]]
        tail = ESCAPES.sub("", pieces[0])
        while (found := re.search(pattern, tail)) is None:
            piece = self._more(name, timeout)
            pieces.append(piece)
            tail = ESCAPES.sub("", tail[-200:] + piece)
        rest = tail[found.end() :]
        self.screens[name] = rest
        shown = ESCAPES.sub("", "".join(pieces))
        return shown[: len(shown) - len(rest)]

    def receive(self, *kinds: str, timeout: float = PATIENCE) -> dict[str, Any]:
        """Return the next message whose type is one of `kinds`; the prefix `terminal.` is not part of a kind."""
        while True:
            for message in self.news:
                if message["type"].removeprefix("terminal.") in kinds:
                    self.news.remove(message)
                    return message
            self._read(timeout)

    def _more(self, name: str, timeout: float) -> str:
        self.screens[name] = ""
        while not self.screens[name]:
            self._read(timeout)
        return self.screens[name]

    def _read(self, timeout: float) -> None:
        message = self.ws.receive_message(timeout)
        if message["type"] == "terminal.output":
            payload = message["payload"]
            self.screens[payload["session_name"]] += payload["data"]
        else:
            self.news.append(message)


def runs(pid: int) -> bool:
    """Report whether a process exists and is no zombie."""
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):  # the second when the process ends between open and read
        return False
