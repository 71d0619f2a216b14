"""Conversion of `OSError` and other host exceptions into `Failure` values.

The `detail` made here names the kind of trouble without paths and secrets, so that any log may contain the detail. A
`HostError` brings the detail of the code that raised it.
"""

import errno
import os
import socket
import ssl

from svc_proto.facts import Failure, FailureKind

__all__ = ["HostError", "failure_of", "short_reason"]

_KINDS: dict[int, FailureKind] = {
    errno.ENOENT: FailureKind.NOT_FOUND,
    errno.ENOTDIR: FailureKind.NOT_FOUND,
    errno.ENXIO: FailureKind.NOT_FOUND,
    errno.EACCES: FailureKind.DENIED,
    errno.EPERM: FailureKind.DENIED,
    errno.EROFS: FailureKind.DENIED,
    errno.EEXIST: FailureKind.EXISTS,
    errno.ENOSPC: FailureKind.NO_SPACE,
    errno.EDQUOT: FailureKind.NO_SPACE,
    errno.EFBIG: FailureKind.TOO_LARGE,
    errno.E2BIG: FailureKind.TOO_LARGE,  # arguments and environment of a program
    errno.ENOEXEC: FailureKind.INVALID,  # not a program
    errno.EINVAL: FailureKind.INVALID,
    errno.EISDIR: FailureKind.INVALID,
    errno.ESPIPE: FailureKind.INVALID,
    errno.ELOOP: FailureKind.INVALID,
    errno.ENAMETOOLONG: FailureKind.INVALID,
    errno.ECONNREFUSED: FailureKind.UNREACHABLE,
    errno.ECONNRESET: FailureKind.UNREACHABLE,
    errno.ECONNABORTED: FailureKind.UNREACHABLE,
    errno.EPIPE: FailureKind.UNREACHABLE,
    errno.EHOSTUNREACH: FailureKind.UNREACHABLE,
    errno.EHOSTDOWN: FailureKind.UNREACHABLE,
    errno.ENETUNREACH: FailureKind.UNREACHABLE,
    errno.ENETDOWN: FailureKind.UNREACHABLE,
    errno.EADDRNOTAVAIL: FailureKind.UNREACHABLE,
    errno.EAFNOSUPPORT: FailureKind.UNREACHABLE,
    errno.ETIMEDOUT: FailureKind.TIMED_OUT,
}


class HostError(Exception):
    """A failure that runtime code raises with its kind and detail already chosen."""

    def __init__(self, kind: FailureKind, detail: str = "") -> None:
        super().__init__(detail)
        self.failure = Failure(kind, detail)


def failure_of(error: BaseException) -> Failure:
    """Return the failure for an exception; its kind is `INTERNAL` for a type or error number that is not known here."""
    if isinstance(error, HostError):
        return error.failure
    if isinstance(error, ssl.SSLError):
        return Failure(FailureKind.TLS, short_reason(error))
    if isinstance(error, socket.gaierror):
        return Failure(FailureKind.UNREACHABLE, "name not resolved")
    if isinstance(error, OSError):
        return Failure(_KINDS.get(error.errno or 0, FailureKind.INTERNAL), short_reason(error))
    if isinstance(error, ValueError):  # a NUL in a path, text that is not UTF-8
        return Failure(FailureKind.INVALID, "value not acceptable to the host")
    return Failure(FailureKind.INTERNAL, type(error).__name__)


def short_reason(error: BaseException) -> str:
    """Return a short phrase for a log that names the kind of an error, without its values."""
    if isinstance(error, ssl.SSLError):
        return f"TLS: {getattr(error, 'reason', None) or type(error).__name__}"
    if isinstance(error, OSError) and error.errno:
        return os.strerror(error.errno).lower()
    return type(error).__name__
