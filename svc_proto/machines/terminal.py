"""Terminals of one client: lifecycle, names, and output in whole characters (wire terminal 1).

| state | trigger       | next  |                                                                     |
|-------|---------------|-------|---------------------------------------------------------------------|
| NONE  | ATTACH        | LIVE  | a shell, or a tmux client, runs in a pseudo-terminal                |
| LIVE  | ATTACH        | LIVE  | the same name again: only the size changes                          |
| LIVE  | DETACH        | ENDED | by the client; the tmux session continues, a bare shell gets SIGHUP |
| LIVE  | KILL          | ENDED | by the client                                                       |
| LIVE  | EXIT          | ENDED | the shell exited by itself                                          |
| LIVE  | LOST          | ENDED | the client's socket closed, or the relay stops: like a detach       |
| LIVE  | GRANT_EXPIRED | ENDED | the grant has expired or was revoked: like a detach                 |
"""

import codecs
import re
import unicodedata
from collections.abc import Mapping
from enum import Enum

from svc_proto.basics.entropy import sha256_hex
from svc_proto.basics.validate import integer_text, number
from svc_proto.commands import TerminalSize
from svc_proto.machines.transitions import Table

__all__ = [
    "MAX_REPLAY",
    "MAX_TERMINALS",
    "REASONS",
    "TERMINAL_TABLE",
    "OutputBuffer",
    "TerminalState",
    "TerminalTrigger",
    "parse_terminal_size",
    "parse_tmux_list",
    "replay_text",
    "shell_status",
    "tmux_name",
]

MAX_TERMINALS = 4  # of one socket, wire terminal 1.4
FLUSH_AFTER = 0.016  # s after the first unflushed byte, wire terminal 1.5
FLUSH_AT = 4096  # bytes that are flushed immediately
MAX_REPLAY = 64 * 1024  # bytes of an earlier screen
MAX_CELLS = 65_535  # of either side of a terminal
NAME_DIGITS = 8  # of the hash of a session name that is not ASCII
_FOREIGN = re.compile(r"[^A-Za-z0-9_-]+")


class TerminalState(Enum):
    """State of a terminal."""

    NONE = "none"
    LIVE = "live"
    ENDED = "ended"


class TerminalTrigger(Enum):
    """Event that can change the state of a terminal."""

    ATTACH = "attach"
    DETACH = "detach"
    KILL = "kill"
    EXIT = "exit"
    LOST = "lost"
    GRANT_EXPIRED = "grant expired"


TERMINAL_TABLE: Table[TerminalState, TerminalTrigger] = {
    (TerminalState.NONE, TerminalTrigger.ATTACH): TerminalState.LIVE,
    (TerminalState.LIVE, TerminalTrigger.ATTACH): TerminalState.LIVE,
    (TerminalState.LIVE, TerminalTrigger.DETACH): TerminalState.ENDED,
    (TerminalState.LIVE, TerminalTrigger.KILL): TerminalState.ENDED,
    (TerminalState.LIVE, TerminalTrigger.EXIT): TerminalState.ENDED,
    (TerminalState.LIVE, TerminalTrigger.LOST): TerminalState.ENDED,
    (TerminalState.LIVE, TerminalTrigger.GRANT_EXPIRED): TerminalState.ENDED,
}

# Clients evaluate these texts: the phone takes the first two as the user's decision, the desktop exits 0 on three.
REASONS = {
    TerminalTrigger.DETACH: "client detach",
    TerminalTrigger.KILL: "client kill",
    TerminalTrigger.EXIT: "eof",
    TerminalTrigger.LOST: "server shutdown",
    TerminalTrigger.GRANT_EXPIRED: "grant expired",
}


class OutputBuffer:
    """Output buffer of a terminal: UTF-8 text for a client, batched, and never split within a character.

    With `tmux` an invalid or incomplete character is skipped instead of becoming U+FFFD. tmux has repaired the output
    of programs already. But when a client is too slow, tmux discards its pending output, perhaps within a character,
    and redraws the screen.
    """

    def __init__(self, *, tmux: bool = False) -> None:
        self._errors = "ignore" if tmux else "replace"
        self._pieces: list[bytes] = []  # may begin with an incomplete character
        self._size = 0
        self._due = 0.0

    def feed(self, data: bytes, now: float) -> float:
        """Add bytes; return when to `drain` them (monotonic s): `now` once there are enough."""
        if not self._size:
            self._due = now + FLUSH_AFTER
        self._pieces.append(data)
        self._size += len(data)
        return now if self._size >= FLUSH_AT else self._due

    def drain(self, *, final: bool = False) -> bytes:
        """Remove and return the buffered text, in UTF-8; an incomplete last character stays, unless `final` is set."""
        raw = b"".join(self._pieces)
        self._pieces.clear()
        self._size = 0
        if raw.isascii():
            return raw
        text, n = codecs.utf_8_decode(raw, self._errors, final)
        self._pieces.append(raw[n:])
        return text.encode("utf-8")


def parse_terminal_size(payload: Mapping[str, object]) -> TerminalSize:
    """Parse `cols` and `rows`: 80 by 24 if absent, null or 0; a negative number becomes 1.

    Numbers may be text. Raise `Refused` 400 for any other value, and beyond 65,535 in either direction.
    """
    return TerminalSize(_cells(payload, "cols", 80), _cells(payload, "rows", 24))


def tmux_name(prefix: str, name: str) -> str:
    """Return the tmux session name for a client's name: characters but ASCII letters, digits, `_` and `-` are replaced.

    The name follows `prefix`, without `_` at its ends; an empty one becomes `default`. A name that is not ASCII gets a
    hash, since such names would otherwise share one session.
    """
    name = unicodedata.normalize("NFC", name)
    short = _FOREIGN.sub("_", name).strip("_")
    if not name.isascii():
        digits = sha256_hex(name)[:NAME_DIGITS]
        short = f"{short}-{digits}" if short else digits
    return prefix + (short or "default")


def shell_status(status: int | None) -> int | None:
    """Return the exit status as shells do: 0 to 255, or 128 plus the signal; None if unknown."""
    if status is None:
        return None
    return status if status >= 0 else 128 - status


def replay_text(screen: bytes) -> str:
    """Return the last 64 KiB of a captured screen as text, without invalid bytes; empty for a blank one."""
    if not screen.strip():
        return ""
    return screen[-MAX_REPLAY:].decode("utf-8", "ignore")


def parse_tmux_list(text: str, prefix: str) -> list[dict[str, object]]:
    """Parse rows of `list-sessions -F '#{session_name} #{session_attached} #{session_windows} #{session_created}'`.

    Return those whose name begins with `prefix`, sorted by name; malformed rows are skipped.
    """
    rows: list[dict[str, object]] = []
    for line in text.splitlines():
        words = line.split(" ")
        if len(words) != 4 or not words[0].startswith(prefix) or not all(word.isdecimal() for word in words[1:]):
            continue
        name, attached, windows, created = words
        rows.append(
            {
                "name": name.removeprefix(prefix),
                "tmux_name": name,
                "attached": int(attached),
                "windows": int(windows),
                "created_at": int(created),
            }
        )
    return sorted(rows, key=lambda row: str(row["name"]))


def _cells(payload: Mapping[str, object], key: str, default: int) -> int:
    value = integer_text(payload.get(key))
    if value is None or value == 0:
        return default
    return max(int(number(value, key, -MAX_CELLS, MAX_CELLS)), 1)
