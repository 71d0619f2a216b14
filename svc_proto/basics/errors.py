"""Exceptions by blame: ours, the peer's, and a service's refusal. Any other exception that escapes is a bug.

Exception
└── ProtocolError
    ├── LocalProtocolError     we broke a rule of the protocol: a bug on this side
    └── RemoteProtocolError    the peer broke a rule; has the status or close code to answer with
Refused                        a well-formed request that the service declines, with a status and a code
ToolError                      text for a model in place of a result
"""

from collections.abc import Mapping

__all__ = ["LocalProtocolError", "ProtocolError", "Refused", "RemoteProtocolError", "ToolError"]


CHALLENGE = ((b"www-authenticate", b"Bearer"),)


class ProtocolError(Exception):
    """Violation of a protocol's rule, by this side or by the peer."""


class LocalProtocolError(ProtocolError):
    """Attempt of this side to do what the protocol forbids."""


class RemoteProtocolError(ProtocolError):
    """Violation of the protocol by the peer.

    `status` is the HTTP status of the response while one is still possible. `close_code` is the WebSocket close code
    (RFC 6455 section 7.4.1) once the connection is a WebSocket. `code` is the error code of the refusal; None: that of
    the status.
    """

    def __init__(self, message: str, *, status: int = 400, close_code: int = 1002, code: str | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.close_code = close_code
        self.code = code


class Refused(Exception):  # noqa: N818 - a refusal is an answer, not an error of the program
    """A request that the service declines: `status` for HTTP, `code` an error code, `message` for people.

    `extra` is merged into the body, `headers` into the head. Never put a secret into any of them. A 401 without headers
    gets the scheme "Bearer" (RFC 9110 section 15.5.2).
    """

    def __init__(
        self,
        status: int,
        code: str,
        message: str,
        *,
        extra: Mapping[str, object] | None = None,
        headers: tuple[tuple[bytes, bytes], ...] = (),
    ) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.message = message
        self.extra = dict(extra or {})
        self.headers = headers or (CHALLENGE if status == 401 else ())


class ToolError(Exception):
    """Failure of a tool call. People see the `message`, one line; the model also reads `advice`, after it."""

    def __init__(self, message: str, advice: str = "") -> None:
        super().__init__(f"{message}\n{advice}".rstrip())
        self.message = message
