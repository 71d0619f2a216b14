"""A range of an open file that is sent on a connection; a worker reads it, so a slow disk does not block the loop."""

import os
import socket
from collections.abc import Callable

from runtimes.failures import HostError, failure_of
from runtimes.files.file_service import OpenHandle
from runtimes.host.pump import Pump
from runtimes.host.thread_pool import ThreadPool
from svc_proto.facts import Failure, FailureKind, OperationId

__all__ = ["FileBody"]

STEP = 1024 * 1024  # most bytes of one call of sendfile
CHUNK_SIZE = 256 * 1024  # bytes of one read where the kernel cannot send the file itself (TLS)

StepCallback = Callable[[int, BaseException | None], None]


class FileBody:
    """State of one `SendFile` operation. Keeps the file's handle open until it is over and no worker uses it."""

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
        self.chunk = b""  # result of `step_read`
        source.acquire()

    def advance(self, n: int) -> None:
        """Count `n` bytes as sent."""
        self._offset += n
        self.left -= n

    def answer(self) -> None:
        """Answer the operation: the last byte was sent."""
        self.finish()
        self._pump.answer(self._op, self._total)

    def fail(self, error: BaseException) -> None:
        """Fail the operation with an error of the file or socket."""
        self.finish()
        self._pump.fail(self._op, failure_of(error))

    def fail_closed(self) -> None:
        """Fail the operation, because the channel has closed."""
        self.finish()
        self._pump.fail(self._op, Failure(FailureKind.CANCELLED, "the channel closed"))

    def finish(self) -> None:
        """Release the file's handle."""
        if not self.over:
            self.over = True
            self._source.release_use()

    def step_sendfile(self, sock: socket.socket, done: StepCallback) -> None:
        """Send the next part by `sendfile` on a worker, then call `done` with the number of sent bytes and the error.

        Zero bytes without an error mean that the socket accepts no more now.

        The worker uses a duplicate of the socket. Otherwise, after the channel closes, its descriptor could belong to
        another socket.
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

        def written(result: int | None, error: BaseException | None) -> None:
            os.close(out)
            self._source.release_use()
            done(result or 0, error)

        self._source.acquire()
        self._workers.submit(work, written)

    def step_read(self, done: StepCallback) -> None:
        """Read the next part into `chunk` on a worker, then call `done` with its length and the error."""
        fd, offset, n = self._source.fd, self._offset, min(self.left, CHUNK_SIZE)

        def work() -> bytes:
            data = os.pread(fd, n, offset)
            if not data:
                raise HostError(FailureKind.INVALID, "the file is shorter than what was to be sent")
            return data

        def finished(result: bytes | None, error: BaseException | None) -> None:
            self._source.release_use()
            self.chunk = result or b""
            done(len(self.chunk), error)

        self._source.acquire()
        self._workers.submit(work, finished)
