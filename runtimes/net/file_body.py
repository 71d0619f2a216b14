"""A stretch of an open file on its way to a socket, read or sent by a worker so that a slow disk stops nobody."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable

from runtimes.failures import HostError, failure_of
from runtimes.files.file_service import OpenHandle
from runtimes.host.pump import Pump
from runtimes.host.thread_pool import ThreadPool
from svc_proto.facts import Failure, FailureKind, OperationId

__all__ = ["FileBody"]

STEP = 1024 * 1024  # bytes given to one call of sendfile
CHUNK_SIZE = 256 * 1024  # bytes read at once where the kernel cannot send the file itself (TLS)

StepCallback = Callable[[int, BaseException | None], None]


class FileBody:
    """One `SendFile` operation. Holds the file's handle until it is over and no worker is at it."""

    def __init__(
        self, pump: Pump, workers: ThreadPool, op: OperationId, source: OpenHandle, offset: int, n: int
    ) -> None:
        self._pump = pump
        self._workers = workers
        self._op = op
        self._source = source
        self._offset = offset
        self._total = n
        self.left = n
        self.over = False
        self.chunk = b""  # what `step_read` brought
        source.acquire()

    def advance(self, n: int) -> None:
        """`n` bytes are on their way."""
        self._offset += n
        self.left -= n

    def answer(self) -> None:
        """The last byte has left."""
        self.finish()
        self._pump.answer(self._op, self._total)

    def fail(self, error: BaseException) -> None:
        """The file or the socket failed."""
        self.finish()
        self._pump.fail(self._op, failure_of(error))

    def fail_closed(self) -> None:
        """The channel is gone."""
        self.finish()
        self._pump.fail(self._op, Failure(FailureKind.CANCELLED, "the channel closed"))

    def finish(self) -> None:
        """Let go of the file."""
        if not self.over:
            self.over = True
            self._source.release_use()

    def step_sendfile(self, sock: socket.socket, done: StepCallback) -> None:
        """Have the kernel send the next part: `done(0, None)` when the socket takes no more now.

        The worker uses a duplicate of the socket, so that closing the channel meanwhile cannot hand it another's.
        """
        try:
            out = os.dup(sock.fileno())
        except OSError as error:  # out of descriptors
            done(0, error)
            return
        fd, offset, n = self._source.fd, self._offset, min(self.left, STEP)

        def work() -> int:
            try:
                count = os.sendfile(out, fd, offset, n)
            except BlockingIOError:
                return 0
            if not count:
                raise HostError(FailureKind.INVALID, "the file is shorter than what was to be sent")
            return count

        def told(result: int | None, error: BaseException | None) -> None:
            os.close(out)
            self._source.release_use()
            done(result or 0, error)

        self._source.acquire()
        self._workers.submit(work, told)

    def step_read(self, done: StepCallback) -> None:
        """Read the next part into `chunk`."""
        fd, offset, n = self._source.fd, self._offset, min(self.left, CHUNK_SIZE)

        def work() -> bytes:
            data = os.pread(fd, n, offset)
            if not data:
                raise HostError(FailureKind.INVALID, "the file is shorter than what was to be sent")
            return data

        def told(result: bytes | None, error: BaseException | None) -> None:
            self._source.release_use()
            self.chunk = result or b""
            done(len(self.chunk), error)

        self._source.acquire()
        self._workers.submit(work, told)
