import pytest

from svc_proto.commands import Abort, Notify
from svc_proto.facts import Accepted, Address, ChannelId, Received, Stopping
from svc_proto.phone.keyboard_control import (
    KEYBOARD,
    ConfirmationAnswer,
    DetachChannels,
    NetworkChanged,
    SetSwitch,
    TapAttachment,
    TextAction,
    TextInput,
    UserInput,
    parse_user_input,
)
from svc_proto.phone.safety.settings import Switch
from tests.phone.harness import KEYS, with_keyboard


def decision(allow: bool, remember: bool = False, which: str | None = None) -> ConfirmationAnswer:
    return ConfirmationAnswer(allow=allow, remember=remember, which=which)


@pytest.mark.parametrize(
    ("line", "word"),
    [
        ("say Memo one.WAV", TextInput(TextAction.PLAY, "Memo one.WAV")),
        ("say it.wav is short", TextInput(TextAction.SAY, "it.wav is short")),
        *((line, decision(True)) for line in ("y", "Yes", " allow ")),
        ("a", decision(True, True)),
        ("ALWAYS c3", decision(True, True, "c3")),
        ("n", decision(False)),
        ("no C7", decision(False, which="c7")),
        ("deny", decision(False)),
        ("on", SetSwitch(Switch.MASTER, True)),
        ("off", SetSwitch(Switch.MASTER, False)),
        ("master off", SetSwitch(Switch.MASTER, False)),
        *((f"{switch.value} on", SetSwitch(switch, True)) for switch in Switch),
        *((line, None) for line in ("y c1 c2", "maybe", "unattended", "unattended perhaps", "on on")),
        ("show MEDIA:svc-relay://aBc ü", TextInput(TextAction.SHOW, "MEDIA:svc-relay://aBc ü")),
        (" SHOW  MEDIA:/tmp/A.png ", TextInput(TextAction.SHOW, "MEDIA:/tmp/A.png")),
        ("show", None),
        ("tap 12", TapAttachment(12)),
        ("tap 999999999", TapAttachment(999_999_999)),
        *((line, None) for line in ("tap 1000000000", "tap", "tap -1", "tap 1 2", "tap " + "9" * 5_000)),
        ("notify Ann: Are you there?", TextInput(TextAction.NOTIFY, "Ann: Are you there?")),
        ("Notify Hi", TextInput(TextAction.NOTIFY, "Hi")),
        ("notify", None),
        ("say What is it?", TextInput(TextAction.SAY, "What is it?")),
        (" CHAT  Why? ", TextInput(TextAction.CHAT, "Why?")),
        ("shell ls -l  /", TextInput(TextAction.SHELL, "ls -l  /")),
        ("shell", None),
        ("leave", DetachChannels()),
        ("leave it", None),
        ("wifi", NetworkChanged(False)),
        ("Cellular", NetworkChanged(True)),
    ],
)
def test_a_line(line: str, word: UserInput | None) -> None:
    assert parse_user_input(line) == word


def test_one_keyboard_sends_lines_in_pieces() -> None:
    rig = with_keyboard()
    rig.book >> Accepted(ChannelId(4), KEYBOARD, KEYBOARD) << [Abort(ChannelId(4))]
    rig.book >> Accepted(ChannelId(6), Address("127.0.0.1", 5), KEYBOARD) << [Abort(ChannelId(6))]
    for piece in (b"chi", b"p on\r", b"\n\n  \noverlay off\nch"):
        rig.book >> Received(KEYS, piece)
        rig.book.drain_commands()
    notes = [tell.fields["text"] for tell in rig.new_notifications() if tell.event == "note"]
    assert notes == ["chip on", "overlay off"]
    rig.book >> Received(KEYS, b"\xff\xfe\n")
    assert [type(command) for command in rig.book.drain_commands()] == [Notify]


def test_stop_closes_the_keyboard() -> None:
    rig = with_keyboard(online=False)
    rig.book >> Stopping(5.0)
    assert Abort(KEYS) in rig.book.drain_commands()
    assert rig.phone.state.value == "stopped"
