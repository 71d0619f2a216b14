"""Files of a voice session: an event log as JSON lines, and WAV copies of rendered speech (wire terminal-voice 4.9).

Speech never waits for the disk. Data is gathered and written by one operation at a time. A file is given up with a
warning after one failed write, or when too much data waits; the session continues.
"""

import json
import re
from collections.abc import Mapping
from datetime import UTC, datetime

from svc_proto.basics.pcm import resample, wav_head
from svc_proto.basics.strict_json import encoder
from svc_proto.commands import AppendFile, Level, SweepFolder
from svc_proto.engine.core import Engine
from svc_proto.engine.flow import Flow, run_operation
from svc_proto.facts import Failure

__all__ = ["KEEP_DAYS", "WavRecorder", "EventLog", "GrowingFile", "in_order", "log_name", "delete_old_logs"]

WRITE_AFTER = 2.0  # s that the first data waits for more: each write is an order to the disk's threads
WRITE_AT = 128 * 1024  # bytes that are written at once
MAX_WAITING = 1024 * 1024  # bytes that wait for a slow disk: the file is given up
MAX_LOG = 32 * 1024 * 1024  # bytes of one event log: later events are not logged
MAX_COPY = 64 * 1024 * 1024  # bytes of one WAV copy, 23 minutes at 24 kHz: later sound is not copied
WRITE_TIMEOUT = 60.0  # s for one write
DAY = 86_400.0  # s
KEEP_DAYS = 14  # run_retention_days of the agent, wire 6.1; other runs are kept as long
# JSON as in a log: compact, with sorted names (wire 4.9).
in_order = encoder(json.JSONEncoder(ensure_ascii=False, allow_nan=False, sort_keys=True, separators=(",", ":")))
_FOREIGN = re.compile(r"[^A-Za-z0-9]")


def log_name(kind: str, wall: float, session_id: str) -> str:
    """Return the name of a session's files without suffix: `voice-output-20260101-120000-p3Tabc7Kd2Qx`, in UTC."""
    stamp = f"{datetime.fromtimestamp(wall, UTC):%Y%m%d-%H%M%S}"
    return f"{kind}-{stamp}-{_FOREIGN.sub('', session_id)[:12]}"


def delete_old_logs(engine: Engine, folder: str, kind: str, *, days: int) -> Flow[None]:
    """Delete files of a folder whose names begin with `kind` and that were last changed more than `days` ago.

    A failure is only logged.
    """
    before = engine.now.wall - days * DAY
    outcome = yield from run_operation(engine, SweepFolder(engine.new_op(), folder, before, f"{kind}-"))
    if isinstance(outcome, Failure):
        engine.log(Level.WARNING, "old voice runs not deleted", problem=outcome.kind.value)


class GrowingFile:
    """File that is appended to, piece by piece; the first piece creates the file and its folder."""

    def __init__(self, engine: Engine, path: str) -> None:
        self._engine = engine
        self.path = path
        self.given_up = False
        self._pieces: list[bytes] = []
        self._size = 0
        self._head = b""
        self._writing = False
        self._closed = False
        self._timer = engine.timers.timer(self.flush)

    def write(self, data: bytes, *, head: bytes = b"") -> None:
        """Append data; `head` replaces the first bytes of the file in the same write.

        Data for a closed file, or for one that was given up, is dropped. If more than `MAX_WAITING` bytes wait, the
        file is given up.
        """
        if self.given_up or self._closed:
            return
        if self._size + len(data) > MAX_WAITING:
            self._give_up("the disk is too slow")
            return
        self._pieces.append(data)
        self._size += len(data)
        self._head = head or self._head
        if self._size >= WRITE_AT:
            self.flush()
        elif self._timer.when is None and not self._writing:
            self._timer.set(self._engine.now.mono + WRITE_AFTER)

    def flush(self) -> None:
        """Start to write the waiting data, unless a write is in progress."""
        self._timer.cancel()
        if self._pieces and not self._writing:
            self._writing = True
            self._engine.spawn(self._write())

    def close(self) -> None:
        """Drop further data, and write what is waiting."""
        self._closed = True
        self.flush()
        self._timer.retire()

    def _write(self) -> Flow[None]:
        try:
            while self._pieces and not self.given_up:
                data, head = b"".join(self._pieces), self._head
                self._pieces, self._size, self._head = [], 0, b""
                order = AppendFile(self._engine.new_op(), self.path, data, head)
                outcome = yield from run_operation(self._engine, order, within=WRITE_TIMEOUT)
                if isinstance(outcome, Failure):
                    self._give_up(outcome.kind.value)
        finally:
            self._writing = False

    def _give_up(self, problem: str) -> None:
        self.given_up = True
        self._pieces, self._size = [], 0
        self._timer.cancel()
        self._engine.log(Level.WARNING, "voice file given up", problem=problem)


class EventLog(GrowingFile):
    """Event log of one session: JSON lines, each an event without its audio.

    At `MAX_LOG` bytes a last line `log.full` is written; later events are dropped.
    """

    _left = MAX_LOG

    def record(self, event: Mapping[str, object]) -> None:
        """Append an event as a line, with the time as `unix_ms`."""
        self._line(in_order({**event, "unix_ms": int(self._engine.now.wall * 1000)}))

    def add(self, text: str) -> None:
        """Append an event, encoded by `in_order`, as a line with the time as `unix_ms`.

        Its member names must sort before `unix_ms`.
        """
        self._line(f'{text[:-1]},"unix_ms":{int(self._engine.now.wall * 1000)}}}')

    def _line(self, text: str) -> None:
        if self._left <= 0:
            return
        line = f"{text}\n".encode("utf-8", "backslashreplace")  # a lone surrogate stays valid JSON
        self._left -= len(line)
        if self._left > 0:
            self.write(line)
        else:
            full = in_order({"type": "log.full", "limit_bytes": MAX_LOG, "unix_ms": int(self._engine.now.wall * 1000)})
            self.write(f"{full}\n".encode())


class WavRecorder(GrowingFile):
    """WAV copy of one response's speech; each write renews its head, so that the file can be played at any time."""

    _rate = 0
    _bytes = 0

    def add(self, pcm: bytes, rate: int) -> None:
        """Add sound, resampled to the rate (Hz) of the first piece; drop a piece that would exceed `MAX_COPY` bytes."""
        first = not self._rate
        self._rate = self._rate or rate
        pcm = resample(pcm, rate, self._rate)
        if self._bytes + len(pcm) > MAX_COPY:
            return
        self._bytes += len(pcm)
        head = wav_head(self._bytes, self._rate)
        self.write(head + pcm if first else pcm, head=b"" if first else head)
