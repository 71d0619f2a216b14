"""The words of the person at the keyboard, and the channel they come on."""

from __future__ import annotations

import pytest

from svc_proto.commands import Abort, Notify
from svc_proto.facts import Accepted, Address, ChannelId, Closed, ReadClosed, Received, Stopping
from svc_proto.phone.keyboard_control import (
    KEYBOARD,
    Answered,
    LetGo,
    OtherNetwork,
    Phrase,
    Tap,
    TurnSwitch,
    Verb,
    Word,
    read_word,
)
from svc_proto.phone.safety.settings import Switch
from tests.phone.harness import KEYS, seated


def decision(allow: bool, remember: bool = False, which: str | None = None) -> Answered:
    return Answered(allow=allow, remember=remember, which=which)


@pytest.mark.parametrize(
    ("line", "word"),
    [
        ("say Memo one.WAV", Phrase(Verb.PLAY, "Memo one.WAV")),
        ("say it.wav is short", Phrase(Verb.SAY, "it.wav is short")),
        ("y", decision(True)),
        ("Yes", decision(True)),
        (" allow ", decision(True)),
        ("a", decision(True, True)),
        ("ALWAYS c3", decision(True, True, "c3")),
        ("n", decision(False)),
        ("no C7", decision(False, which="c7")),
        ("deny", decision(False)),
        ("on", TurnSwitch(Switch.MASTER, True)),
        ("off", TurnSwitch(Switch.MASTER, False)),
        ("master off", TurnSwitch(Switch.MASTER, False)),
        *((f"{switch.value} on", TurnSwitch(switch, True)) for switch in Switch),
        ("y c1 c2", None),
        ("maybe", None),
        ("unattended", None),
        ("unattended perhaps", None),
        ("on on", None),
        ("show MEDIA:svc-relay://aBc ü", Phrase(Verb.SHOW, "MEDIA:svc-relay://aBc ü")),
        (" SHOW  MEDIA:/tmp/A.png ", Phrase(Verb.SHOW, "MEDIA:/tmp/A.png")),
        ("show", None),
        ("tap 12", Tap(12)),
        ("tap 999999999", Tap(999_999_999)),
        ("tap 1000000000", None),
        ("tap", None),
        ("tap -1", None),
        ("tap 1 2", None),
        ("tap " + "9" * 5_000, None),
        ("notify Ann: Are you there?", Phrase(Verb.NOTIFY, "Ann: Are you there?")),
        ("Notify Hi", Phrase(Verb.NOTIFY, "Hi")),
        ("notify", None),
        ("say What is it?", Phrase(Verb.SAY, "What is it?")),
        (" CHAT  Why? ", Phrase(Verb.CHAT, "Why?")),
        ("shell ls -l  /", Phrase(Verb.SHELL, "ls -l  /")),
        ("shell", None),
        ("leave", LetGo()),
        ("leave it", None),
        ("wifi", OtherNetwork(False)),
        ("Cellular", OtherNetwork(True)),
    ],
)
def test_a_line(line: str, word: Word | None) -> None:
    assert read_word(line) == word


# --- the channel --------------------------------------------------------------------------------------------------


def test_one_keyboard_and_no_other_peer() -> None:
    rig = seated()
    rig.book >> Accepted(ChannelId(4), KEYBOARD, KEYBOARD) << [Abort(ChannelId(4))]
    rig.book >> Accepted(ChannelId(6), Address("127.0.0.1", 5), KEYBOARD) << [Abort(ChannelId(6))]


def test_lines_in_pieces() -> None:
    rig = seated()
    for piece in (b"chi", b"p on\r", b"\n\n  \noverlay off\nch"):
        rig.book >> Received(KEYS, piece)
        rig.book.take()
    notes = [tell.fields["text"] for tell in rig.told() if tell.event == "note"]
    assert notes == ["chip on", "overlay off"]


def test_what_is_no_text() -> None:
    rig = seated()
    rig.book >> Received(KEYS, b"\xff\xfe\n")
    assert [type(command) for command in rig.book.take()] == [Notify]


@pytest.mark.parametrize("end", [ReadClosed(KEYS), Closed(KEYS, "hang-up"), Received(KEYS, b"y" * 4097)])
def test_the_end_of_the_keyboard_is_not_that_of_the_phone(end: ReadClosed | Closed | Received) -> None:
    rig = seated()
    rig.book >> end << ([] if isinstance(end, Closed) else [Abort(KEYS)])
    if not isinstance(end, Closed):
        rig.book >> Closed(KEYS) << []
    rig.command("/ping")
    assert [status for _, status, _ in rig.responses()] == [200]


def test_a_stop_lets_go_of_the_keyboard() -> None:
    rig = seated(online=False)
    rig.book >> Stopping(5.0)
    assert Abort(KEYS) in rig.book.take()
    assert rig.phone.state.value == "stopped"
