"""Error texts of the commands: a `ServiceCallError` as a `CliError`, and a peer's text made safe for a terminal."""

from collections.abc import Mapping
from typing import TypeVar

from svc_proto.basics.certificate_pins import PIN_CHANGED
from svc_proto.basics.sanitize import sanitize_line
from svc_proto.cli.errors import CliError
from svc_proto.engine.flow import Flow
from svc_proto.engine.http_client import HttpResult
from svc_proto.facts import Failure, FailureKind
from svc_proto.service_clients.failure_text import failure_reason
from svc_proto.service_clients.service_client import ServiceCallError, ServiceFault, error_message_in

__all__ = ["PAIRED", "tls_hint", "error_text", "with_explanation", "sanitize_line", "cli_error_of"]

PAIRED = {ServiceFault.UNAUTHORIZED: "the relay does not know this session any more: pair again with svc-relay pair"}
NO_TLS = ("WRONG_VERSION_NUMBER", "RECORD_LAYER_FAILURE")  # OpenSSL's error names for an answer in plain text
T = TypeVar("T")


def with_explanation(call: Flow[T], sentences: Mapping[ServiceFault, str]) -> Flow[T]:
    """Return the result of a call; raise a `CliError` for its `ServiceCallError`.

    If the server has answered and `sentences` has the fault, the sentence is the text (`{said}` is replaced by
    `error_text` of the answer), else `cli_error_of` makes the text.
    """
    try:
        return (yield from call)
    except ServiceCallError as error:
        sentence = sentences.get(error.fault)
        if sentence is None or error.answer is None:
            raise cli_error_of(error) from None
        raise CliError(sentence.replace("{said}", error_text(error.answer))) from None


def cli_error_of(error: ServiceCallError) -> CliError:
    """Return the error with the usual text for a failed call."""
    peer, failure, answer = error.peer, error.failure, error.answer
    where = f"{peer.name} at {peer.url}"
    if error.fault is ServiceFault.CONNECTION_LOST:
        return CliError(f"the answer broke off: {error.why}")
    if answer is None:
        assert failure is not None
        remedy = f"; {peer.remedy}" if peer.remedy else ""
        return CliError(tls_hint(peer.url, failure) or f"{where} cannot be reached: {failure_reason(failure)}{remedy}")
    match error.fault:
        case ServiceFault.NO_JSON:
            return CliError(f"{where} does not answer in JSON: is it really one?")
        case ServiceFault.NO_OBJECT:
            return CliError(f"{where} answers with something else than an object: is it really one?")
        case ServiceFault.UNAVAILABLE:
            return CliError(f"{peer.name} gave no {error.lacks}: is it really one?")
        case ServiceFault.SERVER_ERROR:
            return CliError(f"{where} is not well: {error_text(answer)}")
        case _:
            return CliError(f"{peer.name} refuses: {error_text(answer)}")


def error_text(answer: HttpResult) -> str:
    """Return the text of a server's error response, safe for a terminal: its message, if any, and the status.

    A redirect gives its target instead of the message; an HTML page gives only the status.
    """
    where = sanitize_line((answer.headers.get(b"location") or b"").decode("latin-1"))
    if 300 <= answer.status < 400 and where:
        return f"it sends callers on to {where} (status {answer.status})"
    page = (answer.headers.get(b"content-type") or b"").startswith(b"text/html")
    text = "" if page else sanitize_line(error_message_in(answer.body, other=True))
    return f"{text} (status {answer.status})" if text else f"status {answer.status}"


def tls_hint(url: str, failure: Failure) -> str | None:
    """Return the text for a changed or untrusted certificate, or a server without TLS; None for any other failure."""
    if failure.detail == PIN_CHANGED:
        return (
            f"{url} shows another certificate than when you paired: another host may be in between. If you have "
            "changed it yourself, pair again by QR (svc-relay pair --pair-qr …), or with --new-certificate"
        )
    if failure.kind is not FailureKind.TLS:
        return None
    if any(sign in failure.detail for sign in NO_TLS):
        return f"{url} does not speak TLS: begin its address with {'ws' if url.startswith('wss') else 'http'}://"
    remedy = "for a certificate of your own, set SSL_CERT_FILE to its file"
    return f"{url} cannot be trusted: {failure_reason(failure)}; {remedy}"
