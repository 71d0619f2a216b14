import json
import os
from collections.abc import Callable

import pytest
from attrs import evolve

from servers.start_screen import LOCAL_API_NOTE, StartScreen
from svc_proto.basics.brand import HERMES, SVC
from svc_proto.commands import Notify

Shown = Callable[..., list[str]]
SCREEN = StartScreen(brand=HERMES, dashboard="http://127.0.0.1:9119", model="built-in")
INVITE: dict[str, object] = {
    "qr_payload": "x" * 300,
    "code": "ABC123",
    "relay_url": "ws://192.0.2.2:8767",
    "pairing_url": "hermes-relay://pair?payload=secret",
    "host": "192.0.2.2",
    "port": 8642,
    "tls": False,
    "paired": 2,
}


@pytest.fixture
def shown(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Shown:
    """Return a function that returns what a screen prints for an invite on a terminal, by its columns and lines.

    Without a size, it returns what the screen prints for the notification `started`.
    """

    def show(screen: StartScreen, size: tuple[int, int] | None, **invite: object) -> list[str]:
        monkeypatch.setattr("sys.stdout.fileno", lambda: 1)
        monkeypatch.setattr("os.get_terminal_size", lambda stream: os.terminal_size(size or (80, 24)))
        screen.show(Notify("started", {}) if size is None else Notify("invite", {**INVITE, **invite}))
        out, err = capsys.readouterr()
        assert err == ""
        assert "secret" not in out
        return out.splitlines()

    return show


def test_no_code_is_printed_without_a_terminal(shown: Shown) -> None:
    line = "To pair a phone: svc pair"
    assert shown(SCREEN, None) == [line]
    assert shown(evolve(SCREEN, api_only_here=True), None) == [line, LOCAL_API_NOTE]


def test_a_usual_terminal_is_too_small_for_the_qr_and_shows_all_the_rest(shown: Shown) -> None:
    lines = shown(SCREEN, (80, 24), qr_payload="x" * 700)
    assert sum(1 + len(line) // 80 for line in lines) < 24
    assert "\u2588" not in "".join(lines)
    assert lines[1:] == [
        "Code       ABC123  works once, within 10 minutes; 2 paired",
        "Phones     ws://192.0.2.2:8767  http://192.0.2.2:8642",
        "Dashboard  http://127.0.0.1:9119",
        "Model      built-in (svc model connects another)",
        "Ctrl-C stops. Beside it: svc status, pair, logs -f; without a phone: svc phone",
        "Scan the QR with the Hermes-Relay app for Android, or enter the code.",
        (
            "The QR needs a terminal of 91 x 46, this one is 80 x 24: enlarge it. "
            'Or enter the code, or see the QR by "Pair new device" at http://127.0.0.1:9119, or svc pair --png.'
        ),
    ]


def test_a_usual_terminal_shows_a_shorter_form_of_the_qr_last(shown: Shown, monkeypatch: pytest.MonkeyPatch) -> None:
    relay = {"url": "ws://192.168.100.200:8767", "code": "ABC123"}
    api = {"host": "192.168.100.200", "port": 8642, "tls": False}
    payload = {"svc": 3, "hermes": 3, **api, "key": "sk-" + "a" * 32, "relay": relay, "sig": "s" * 44}
    payload["endpoints"] = [{"role": "lan", "priority": 0, "api": api, "relay": {"url": relay["url"]}}] * 2
    monkeypatch.setenv("SSH_CONNECTION", "198.51.100.9 4711 192.0.2.2 22")
    monkeypatch.setenv("USER", "me")
    lines = shown(SCREEN, (80, 24), qr_payload=json.dumps(payload))
    drawn = [line for line in lines if "\u2588" in line or "\u2580" in line]
    assert drawn == lines[-len(drawn) :]
    assert 20 <= len(drawn) <= 24
    assert f"Key        sk-{'a' * 32}" in lines
    assert "On your own computer: ssh -L 9119:127.0.0.1:9119 me@192.0.2.2, then open" in "\n".join(lines)


def test_a_large_terminal_shows_the_qr_first(shown: Shown) -> None:
    lines = shown(evolve(SCREEN, brand=SVC, dashboard=None, model=None), (100, 60))
    assert len(lines) <= 60
    assert "\u2588" in lines[2]
    (scan,) = [place for place, line in enumerate(lines) if line.startswith("Scan the QR with")]
    names = [line.split()[0] for line in lines[scan + 2 :]]
    assert names == ["Code", "Phones", "Ctrl-C"]


@pytest.mark.parametrize("why", ["it answered 403", "unreachable"])
def test_no_invite(capsys: pytest.CaptureFixture[str], why: str) -> None:
    SCREEN.show(Notify("no invite", {"why": why}))
    out, err = capsys.readouterr()
    assert out == ""
    assert err == f"No pairing code: the relay could not be asked ({why}).\n"


def test_the_address_and_the_new_password_for_the_app(shown: Shown) -> None:
    lines = shown(evolve(SCREEN, password="k7dm-3qzp"), (100, 60), dashboard_url="http://192.0.2.2:9119")
    assert [line for line in lines if line.startswith(("App ", "Password "))] == [
        "App        http://192.0.2.2:9119  by hand, with the password",
        "Password   k7dm-3qzp  of the dashboard; stored in .env",
    ]


def test_a_note_on_routes_is_shown(shown: Shown) -> None:
    note = "this host has no address on a network, so only programs on this host can use the invite"
    assert f"Note: {note}" in shown(SCREEN, (80, 24), notes=(note,))
