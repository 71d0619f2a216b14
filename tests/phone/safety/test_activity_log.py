import pytest

from svc_proto.basics.moment import Moment
from svc_proto.phone.backend import CommandReply, PhoneCommand
from svc_proto.phone.safety.activity_log import MAX_ACTIVITIES, ActivityLog

NOW = Moment(100.0, 1_800_000_000.25)


def command(request_id: str, path: str = "/tap", **body: object) -> PhoneCommand:
    return PhoneCommand("POST", path, body, request_id)


def test_the_fields() -> None:
    log = ActivityLog()
    log.begin(command("r1", nodeId="w0:1", token="hush"), NOW)
    entry = {
        "id": "r1",
        "timestampMs": 1_800_000_000_250,
        "method": "tap",
        "summary": '{"nodeId":"w0:1","token":"[redacted]"}',
        "status": "Pending",
        "resultText": None,
        "thumbnailToken": None,
    }
    assert [each.to_json() for each in log.entries()] == [entry]
    log.finish("r1", CommandReply(200, {"message": "tapped"}), thumbnail_token="t1")
    done = {**entry, "status": "Success", "resultText": "tapped", "thumbnailToken": "t1"}
    assert [each.to_json() for each in log.entries()] == [done]


def test_texts_are_cut() -> None:
    log = ActivityLog()
    log.begin(command("r1", "/" + "m" * 99, text="x" * 500), NOW)
    log.finish("r1", CommandReply(400, {"error": "e" * 500}))
    (entry,) = log.entries()
    assert entry.result_text is not None
    assert (len(entry.method), len(entry.summary), len(entry.result_text)) == (24, 80, 140)


@pytest.mark.parametrize(
    ("reply", "status", "text"),
    [
        (CommandReply(200, {}), "Success", None),
        (CommandReply(200, {"summary": "s", "message": "m", "status": "t"}), "Success", "s"),
        (CommandReply(200, {"summary": 5, "status": "sent"}), "Success", "sent"),
        (CommandReply(200, {"error": "not looked at"}), "Success", None),
        (CommandReply(403, {"error": "blocked package x"}), "Blocked", "blocked package x"),
        (CommandReply(423, {"error": "locked", "status": "not looked at"}), "Failed", "locked"),
        (CommandReply(503, {}), "Failed", None),
    ],
)
def test_entry_of_each_outcome(reply: CommandReply, status: str, text: str | None) -> None:
    log = ActivityLog()
    log.finish(log.begin(command("r1"), NOW), reply)
    (entry,) = log.entries()
    assert (entry.status.value, entry.result_text, entry.summary) == (status, text, "")


def test_the_newest_hundred_newest_first() -> None:
    log = ActivityLog()
    for number in range(MAX_ACTIVITIES + 5):
        log.begin(command(f"r{number}"), NOW)
    assert len(log) == MAX_ACTIVITIES == 100
    assert [entry.activity_id for entry in log.entries()] == [f"r{number}" for number in range(104, 4, -1)]
    log.finish("r0", CommandReply(200, {}))
    assert len(log) == MAX_ACTIVITIES
    log.clear()
    assert log.entries() == []
    log = ActivityLog()
    for name in ("a", "b", "a"):
        log.begin(command(name), NOW)
    assert [entry.activity_id for entry in log.entries()] == ["a", "b"]
    log = ActivityLog()
    assert [log.begin(command(""), NOW), log.begin(command(""), NOW)] == ["local-1", "local-2"]
    log.clear()
    assert log.begin(command(""), NOW) == "local-3"  # a late result of an earlier command is not its result
