import pytest

from svc_proto.basics.certificate_pins import PIN_CHANGED
from svc_proto.cli.error_text import PAIRED, error_text, tls_hint, with_explanation
from svc_proto.commands import Exit
from svc_proto.engine.core import Engine
from svc_proto.engine.flow import Flow
from svc_proto.engine.http_client import HttpResult
from svc_proto.facts import Failure, FailureKind
from svc_proto.schema.json_object import JsonObject
from svc_proto.service_clients.service_client import ServiceClient, ServiceFault
from svc_proto.wire.events import Headers
from tests.cli.harness import REFUSED, SILENT, OneShotHarness, Reply, as_json

RELAY = ServiceClient("the relay", "http://127.0.0.1:8767", "t0ken", remedy="start it")


def ask(engine: Engine) -> Flow[JsonObject]:
    return (yield from RELAY.json(engine, "POST", "/x", {"a": 1}))


AT = "the relay at http://127.0.0.1:8767"


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        (REFUSED, f"{AT} cannot be reached: connection refused; start it"),
        (SILENT, f"{AT} cannot be reached: no answer in time; start it"),
        (as_json({"error": "not so"}, 400), "the relay refuses: not so (status 400)"),
        (as_json({"error": "elsewhere"}, 300), "the relay refuses: elsewhere (status 300)"),
        ((299, b"<html>"), f"{AT} does not answer in JSON: is it really one?"),
        ((200, b"<html>"), f"{AT} does not answer in JSON: is it really one?"),
        (as_json([1]), f"{AT} answers with something else than an object: is it really one?"),
    ],
)
def test_problems(answer: Reply, text: str) -> None:
    assert OneShotHarness(ask, http=answer).fails() == Exit(1, text)


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        (REFUSED, f"{AT} cannot be reached: connection refused; start it"),
        (as_json({}, 404), "the relay refuses: status 404"),
        (as_json({}, 401), "the relay does not know this session any more: pair again with svc-relay pair"),
        (as_json({"error": "two"}, 409), "two (status 409), you see"),
    ],
)
def test_own_error_texts(answer: Reply, text: str) -> None:
    sentences = PAIRED | {ServiceFault.CONFLICT: "{said}, you see", ServiceFault.UNREACHABLE: "never"}
    assert OneShotHarness(lambda engine: with_explanation(ask(engine), sentences), http=answer).fails() == Exit(1, text)


@pytest.mark.parametrize(
    ("body", "text"),
    [
        (b'{"error": "why"}', "why (status 400)"),
        (b'{"error": {"message": "why"}}', "why (status 400)"),
        (b'{"error": {"message": 7}}', "status 400"),
        (b'{"detail": "why"}', "why (status 400)"),
        (b"404: Not Found", "404: Not Found (status 400)"),
        (b'"text"', "text (status 400)"),
        (b"[]", "status 400"),
        (b"", "status 400"),
        (b"\xff\x1b[2Jx", "\ufffd [2Jx (status 400)"),
    ],
)
def test_server_messages(body: bytes, text: str) -> None:
    assert error_text(HttpResult(400, Headers(()), body)) == text


@pytest.mark.parametrize(
    ("status", "fields", "text"),
    [
        (300, [(b"location", b"https://h/relay/")], "it sends callers on to https://h/relay/ (status 300)"),
        (399, [(b"location", b"/\x1b[2J")], "it sends callers on to / [2J (status 399)"),
        (300, [], "said (status 300)"),
        (400, [(b"location", b"/elsewhere")], "said (status 400)"),
        (502, [(b"content-type", b"text/html; charset=utf-8")], "status 502"),
        (502, [(b"content-type", b"text/plain")], "said (status 502)"),
    ],
)
def test_no_page_for_browsers_is_shown(status: int, fields: list[tuple[bytes, bytes]], text: str) -> None:
    assert error_text(HttpResult(status, Headers(fields), b"said")) == text


def test_certificate_hints() -> None:
    changed = tls_hint("wss://h", Failure(FailureKind.TLS, PIN_CHANGED))
    assert changed is not None
    assert "pair again by QR" in changed
    unknown = tls_hint("wss://h", Failure(FailureKind.TLS, "TLS: CERTIFICATE_VERIFY_FAILED"))
    assert unknown is not None
    assert "SSL_CERT_FILE" in unknown
    assert tls_hint("wss://h", Failure(FailureKind.UNREACHABLE)) is None
    plain = Failure(FailureKind.TLS, "TLS: WRONG_VERSION_NUMBER")
    assert tls_hint("wss://h", plain) == "wss://h does not speak TLS: begin its address with ws://"
    assert tls_hint("https://h", plain) == "https://h does not speak TLS: begin its address with http://"
