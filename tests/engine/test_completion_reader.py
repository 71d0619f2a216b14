"""Responses to a completions request: streams with any label, answers in one piece, compression, and errors."""

import gzip
import json
import zlib

import pytest

from svc_proto.agent.interface import TurnOutcome
from svc_proto.engine import completion_reader
from svc_proto.engine.client_channel import MAX_ANSWER
from svc_proto.engine.completion_reader import MAX_LINE, decompress
from svc_proto.wire.events import Headers
from tests.agent.harness import AgentHarness
from tests.support.servers.model_server import DONE, ModelAnswer, chunk, plain, refusal, whole

TEXT = "Grüße 👋"
STREAM = b"".join((chunk({"content": ""}), chunk({"content": TEXT}), chunk(finish="stop"))) + DONE
WHOLE = whole({"content": TEXT}).body
LONG = gzip.compress(b"x" * (2 * MAX_ANSWER))


def answered(
    body: bytes, kind: bytes = b"text/event-stream", *more: tuple[bytes, bytes], size: int = 0
) -> AgentHarness:
    pieces = (body,) if not size else tuple(body[at : at + size] for at in range(0, len(body), size))
    world = AgentHarness(model=[ModelAnswer(events=pieces, kind=kind, headers=more)])
    world.outcome = world.answer("Hi")  # type: ignore[attr-defined]  # for the tests of this module
    return world


@pytest.mark.parametrize("size", [0, 1, 3])
@pytest.mark.parametrize("kind", [b"text/event-stream; charset=utf-8", b"text/plain", b"application/json", b""])
@pytest.mark.parametrize(
    "body",
    [STREAM, b"\xef\xbb\xbf" + STREAM, STREAM.replace(b"\n", b"\r\n"), b": wait\n\n" + STREAM, b"data:\n\n" + STREAM,
     STREAM.replace(b"data: ", b"data:"), b"event: message\n" + STREAM, b"\n\n" + STREAM],
)  # fmt: skip
def test_stream_with_any_label(body: bytes, kind: bytes, size: int) -> None:
    world = answered(body, kind, size=size)
    assert world.host.text == TEXT


@pytest.mark.parametrize("kind", [b"text/event-stream", b"text/plain", b"application/json", b""])
@pytest.mark.parametrize("body", [WHOLE, b"\xef\xbb\xbf " + WHOLE, b"[" + WHOLE + b"]", b"  " + WHOLE + b"\n"])
def test_answer_in_one_piece(body: bytes, kind: bytes) -> None:
    assert answered(body, kind, size=7).host.text == TEXT


def test_chunks_without_fields() -> None:
    lines = STREAM.replace(b"data: ", b"").replace(b"[DONE]", b"")
    assert answered(lines, b"application/x-ndjson", size=9).host.text == TEXT


@pytest.mark.parametrize(
    ("coding", "compressed"),
    [(b"gzip", gzip.compress(STREAM)), (b"x-gzip", gzip.compress(STREAM)), (b"deflate", zlib.compress(STREAM))],
)
def test_compressed_stream(coding: bytes, compressed: bytes) -> None:
    assert answered(compressed, b"text/event-stream", (b"content-encoding", coding), size=11).host.text == TEXT


@pytest.mark.parametrize(
    ("body", "more", "error"),
    [
        (b"\0" * 40, ((b"content-encoding", b"gzip"),), "the compressed answer is broken: "),
        (LONG, ((b"content-encoding", b"gzip"),), f"more than {MAX_ANSWER} bytes"),
        (b"data: " + b"x" * (MAX_LINE + 1), (), f"a line of more than {MAX_LINE} characters"),
    ],
)
def test_unusable_stream(body: bytes, more: tuple[tuple[bytes, bytes], ...], error: str) -> None:
    outcome: TurnOutcome = answered(body, b"text/event-stream", *more, size=65_536).outcome  # type: ignore[attr-defined]
    assert outcome.error is not None
    assert outcome.error.startswith("the model's answer broke off: ")
    assert error in outcome.error


@pytest.mark.parametrize(("limit", "text"), [(len(WHOLE), TEXT), (len(WHOLE) - 1, "")])
def test_the_length_of_an_answer_in_one_piece(limit: int, text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(completion_reader, "MAX_ANSWER", limit)
    assert answered(WHOLE, b"application/json").host.text == text


def test_large_chunk() -> None:
    picture = {"type": "image_url", "image_url": {"url": "data:image/png;base64," + "A" * 1_500_000}}
    body = chunk({"content": "Here.", "images": [picture]}) + chunk(finish="stop") + DONE
    world = answered(body, size=65_536)
    assert world.host.text == "Here."


def test_request_wants_no_compression() -> None:
    world = AgentHarness(model=[plain("Ok")])
    world.answer("Hi")
    assert world.model.heads[0].get(b"accept-encoding") == b"identity"


def test_compressed_refusal() -> None:
    body = refusal(400, "the reason").body
    answer = ModelAnswer(status=400, body=gzip.compress(body), headers=((b"content-encoding", b"gzip"),))
    outcome = AgentHarness(model=[answer]).answer("Hi")
    assert outcome.error == "the model's server refused the request: 400, the reason"
    assert decompress(Headers([(b"content-encoding", b"gzip")]), b"broken") == b"broken"


@pytest.mark.parametrize(
    ("body", "error"),
    [
        (b'event: error\ndata: {"message": "why", "code": 500}\n\n', "the model's server failed: why"),
        (b"event: error\ndata: why\n\n", "the model's server failed: why"),
        (b'data: {"object": "error", "message": "why", "code": 500}\n\n', "the model's server failed: why"),
        (b'data: {"type": "error", "error": {"message": "why"}}\n\n', "the model's server failed: why"),
        (b'data: {"detail": "why"}\n\n', "the model's server failed: why"),
        (
            b'data: {"choices": [{"error": {"message": "why"}, "finish_reason": "error"}]}\n\n',
            "the model's server failed: why",
        ),
        (b'data: {"choices": [{"error": {"code": 5}}]}\n\n', "the model's server failed: it reported an error"),
        (json.dumps([{"error": {"message": "why"}}]).encode(), "the model's server failed: why"),
    ],
)
def test_error_within_a_success(body: bytes, error: str) -> None:
    world = AgentHarness(model=[ModelAnswer(events=(body,))] * 4)
    assert world.answer("Hi").error == error
