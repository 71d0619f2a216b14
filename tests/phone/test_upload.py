import pytest

from svc_proto.commands import Abort, Cancel, Connect, Exit
from svc_proto.facts import Closed, FailureKind, Stopping
from svc_proto.phone.backend import UploadReply
from svc_proto.phone.safety.activity_log import ActivityStatus
from svc_proto.wire.multipart import MultipartDecoder, PartBegin, PartData
from tests.phone.harness import TOKEN, PhoneHarness, RelayEnd, request
from tests.phone.safety.scripted_backend import PICTURE
from tests.support.playbook import SendMatcher


def upload(rig: PhoneHarness, request_id: str = "r1") -> RelayEnd:
    """Start an upload and return the relay's end of its connection."""
    rig.backend.answers["/screenshot"] = PICTURE
    rig.command("/screenshot", request_id)
    connect = rig.book.order(Connect)
    assert (connect.host, connect.port, connect.tls) == ("127.0.0.1", 8767, False)
    return rig.connected(connect)


def test_an_upload(rig: PhoneHarness) -> None:
    end = upload(rig)
    head, body = request(end.receive(rig.book.drain_commands()))
    assert (head.method, head.target) == ("POST", "/media/upload")
    assert head.headers.get(b"authorization") == b"Bearer " + TOKEN.encode()
    decoder = MultipartDecoder(head.headers.get(b"content-type") or b"")
    decoder.receive_data(body)
    decoder.receive_eof()
    begin, data = decoder.next_event(), decoder.next_event()
    assert isinstance(begin, PartBegin)
    assert (begin.name, begin.filename, begin.content_type) == ("file", "screen.png", "image/png")
    assert data == PartData(b"\x89PNG")
    rig.book >> end.answer(200, b'{"ok":true,"token":"abc"}')
    assert Abort(end.ch) in rig.book.drain_commands()
    assert rig.responses() == [("r1", 200, {"media": "MEDIA:hermes-relay://abc"})]
    assert rig.backend.uploads == [("abc", "hermes-relay")]
    (entry,) = rig.phone.gate.log.entries()
    assert (entry.activity_id, entry.thumbnail_token) == ("r1", "abc")
    rig.book >> Closed(end.ch) << []


def test_uploads_that_end_in_another_order(rig: PhoneHarness) -> None:
    ends = []
    for request_id in ("r1", "r2"):
        ends.append(upload(rig, request_id))
        ends[-1].receive(rig.book.drain_commands())
    for number in (1, 0):
        rig.book >> ends[number].answer(200, b'{"token":"t%d"}' % (number + 1))
        rig.book.drain_commands()
    tokens = [(entry.activity_id, entry.thumbnail_token) for entry in rig.phone.gate.log.entries()]
    assert tokens == [("r2", "t2"), ("r1", "t1")]


@pytest.mark.parametrize(
    ("status", "body", "problem"),
    [
        (401, b"{}", "the relay answered 401"),
        *((200, body, "the relay gave no token") for body in (b"", b"[]", b'{"token":""}', b'{"token":5}')),
    ],
)
def test_refused_upload(rig: PhoneHarness, status: int, body: bytes, problem: str) -> None:
    end = upload(rig)
    end.receive(rig.book.drain_commands())
    rig.book >> end.answer(status, body)
    assert rig.responses() == [("r1", 500, {"error": f"the file could not be uploaded: {problem}"})]


def test_an_upload_without_a_connection(rig: PhoneHarness) -> None:
    rig.backend.answers["/screenshot"] = PICTURE
    rig.command("/screenshot")
    rig.book.fail(rig.book.order(Connect), FailureKind.UNREACHABLE)
    assert rig.responses() == [("r1", 500, {"error": "the file could not be uploaded: unreachable"})]
    assert rig.phone.gate.log.entries()[0].status is ActivityStatus.FAILED


def test_upload_timeout(rig: PhoneHarness) -> None:
    end = upload(rig)
    rig.book.drain_commands()
    rig.book.after(15.0)
    assert Abort(end.ch) in rig.book.drain_commands()
    assert rig.responses() == [("r1", 500, {"error": "the file could not be uploaded: timed_out"})]


def test_an_upload_when_the_socket_is_lost(rig: PhoneHarness) -> None:
    end = upload(rig)
    rig.book.drain_commands()
    assert Abort(end.ch) in (rig.book >> Closed(rig.end.ch)).drain_commands()
    rig.book >> Closed(end.ch) << []


def test_an_upload_when_the_phone_is_stopped(rig: PhoneHarness) -> None:
    rig.backend.answers["/screenshot"] = PICTURE
    rig.command("/screenshot")
    connect = rig.book.order(Connect)
    rig.book >> Stopping(10.0) << [Cancel(connect.op), SendMatcher(rig.end.ch)]
    rig.book >> Closed(rig.end.ch) << [Exit(0)]


def test_unencodable_file_part(rig: PhoneHarness) -> None:
    rig.book.logs.bugs = True
    rig.backend.answers["/screenshot"] = UploadReply("screen.png", "image/\n", b"")
    rig.command("/screenshot")
    assert rig.responses() == [("r1", 500, {"error": "internal error, reference bug-1"})]


def test_a_bug_after_the_upload(rig: PhoneHarness) -> None:
    end = upload(rig)
    end.receive(rig.book.drain_commands())
    rig.backend.fault = RuntimeError("bug")
    rig.book >> end.answer(200, b'{"token":"abc"}')
    assert rig.responses() == [("r1", 500, {"error": "internal error, reference bug-1"})]
