from svc_proto.commands import Notify
from svc_proto.phone.transcript import CUT, MAX_LINE_CHARS, MAX_LINES, PhoneTranscript


def shown(transcript: PhoneTranscript) -> list[tuple[str, str]]:
    return [(str(line["kind"]), str(line["text"])) for line in transcript.lines()]


def test_transcript_of_a_conversation() -> None:
    talk = PhoneTranscript()
    talk.add_user_text("Which app?")
    for news in (
        Notify("note", {"text": "chat: → phone_current_app"}),
        Notify("answer", {"text": "It is "}),
        Notify("performed", {"method": "GET", "path": "/ping", "status": 200}),
        Notify("answer", {"text": "Mail."}),
        Notify("answered", {"status": "complete"}),
        Notify("heard", {"text": "And now?"}),
        Notify("spoken", {"text": "Maps.", "sound": b"RIFF"}),
        Notify("answer", {"text": "Bye."}),
    ):
        talk.add_event(news)
    assert shown(talk) == [
        ("person", "Which app?"),
        ("note", "chat: → phone_current_app"),
        ("agent", "It is Mail."),
        ("person", "And now?"),
        ("agent", "Maps."),
        ("agent", "Bye."),
    ]


def test_size_is_limited() -> None:
    talk = PhoneTranscript()
    for _ in range(3):
        talk.add_event(Notify("answer", {"text": "x" * (MAX_LINE_CHARS // 2)}))
    talk.add_event(Notify("answer", {"text": "y"}))
    assert shown(talk) == [("agent", "x" * MAX_LINE_CHARS + CUT)]
    for _ in range(MAX_LINES):
        talk.add_user_text("z" * MAX_LINE_CHARS)
    assert shown(talk)[0] == ("person", "z" * MAX_LINE_CHARS)
    assert [line["id"] for line in talk.lines()] == [*range(2, MAX_LINES + 2)]


def test_answer_is_shown_to_its_end_when_many_lines_follow_its_start() -> None:
    talk = PhoneTranscript()
    talk.add_event(Notify("answer", {"text": "I look at each app."}))
    for number in range(MAX_LINES):
        talk.add_event(Notify("note", {"text": str(number)}))
    for text in ("It is ", "Mail."):
        talk.add_event(Notify("answer", {"text": text}))
    assert shown(talk)[-2:] == [("note", str(MAX_LINES - 1)), ("agent", "It is Mail.")]
