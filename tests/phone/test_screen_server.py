import json
from collections.abc import Iterator

import pytest

from svc_proto.basics.moment import Moment
from svc_proto.commands import Level, Notify, Ready, WriteConfig
from svc_proto.engine.core import Engine
from svc_proto.facts import Accepted, ChannelId, Received, Started
from svc_proto.phone.backend import CommandReply, DelayedReply, PhoneCommand
from svc_proto.phone.keyboard_control import KEYBOARD
from svc_proto.phone.safety.settings import SafetySettings, Switch
from svc_proto.phone.screen_server import PHONE_SESSION, PhoneScreenServer
from svc_proto.phone.service import PhoneConfig
from tests.loops.environment import bearer
from tests.loops.phone_screen import PhoneScreen
from tests.loops.simulated_environment import SimulatedEnvironment
from tests.phone.safety.scripted_backend import ScriptedBackend
from tests.support.playbook import CH, LOCAL, Playbook, accepted, counting_entropy, wire_bytes


@pytest.fixture
def virtual() -> Iterator[SimulatedEnvironment]:
    world = SimulatedEnvironment()
    world.start_relay()
    yield world
    world.close()


@pytest.fixture
def seen(virtual: SimulatedEnvironment) -> PhoneScreen:
    return PhoneScreen(virtual)


def order(world: SimulatedEnvironment, seen: PhoneScreen, path: str, body: object) -> int:
    """Send a bridge command through the relay with the phone's token, as an agent does; return the status."""
    data = json.dumps(body).encode()
    return world.http("POST", path, headers=bearer(seen.token), body=data).status


def test_screen_shows_the_agents_commands(seen: PhoneScreen, virtual: SimulatedEnvironment) -> None:
    first = seen.screen()
    assert (first["name"], first["online"], first["device_control"]) == ("Reference phone", True, True)
    assert (first["screen_on"], first["battery"], first["latest"], first["questions"]) == (True, 64, None, [])
    assert "Mail" in [node["text"] for node in first["screen"]["nodes"]]
    assert order(virtual, seen, "/open_app", {"package": "com.example.mail"}) == 200
    then = seen.screen()
    assert then["screen"]["packageName"] == "com.example.mail"
    assert (then["latest"]["method"], then["latest"]["status"]) == ("open_app", "Success")
    assert then["tag"] != first["tag"]


def test_request_waits_for_a_change(seen: PhoneScreen, virtual: SimulatedEnvironment) -> None:
    tag = seen.screen()["tag"]
    began = virtual.clock()
    assert seen.request("GET", f"/screen?seen={tag}").json["tag"] == tag
    assert 2.9 < virtual.clock() - began < 3.5
    looking = seen.client().begin("GET", f"/screen?seen={tag}", headers=seen.headers)
    virtual.pass_time(0.5)
    began = virtual.clock()
    assert order(virtual, seen, "/open_app", {"package": "com.example.mail"}) == 200
    assert looking.finish().json["screen"]["packageName"] == "com.example.mail"
    assert virtual.clock() - began < 0.5


def test_aborted_request_and_request_during_the_stop(seen: PhoneScreen, virtual: SimulatedEnvironment) -> None:
    tag = seen.screen()["tag"]
    gone = seen.client().begin("GET", f"/screen?seen={tag}", headers=seen.headers)
    virtual.pass_time(0.5)
    gone.wire.abort()
    virtual.pass_time(0.1)
    looking = seen.client().begin("GET", f"/screen?seen={tag}", headers=seen.headers)
    virtual.pass_time(0.5)
    began = virtual.clock()
    seen.server.begin_stop()
    assert looking.finish().json["tag"] == tag
    assert virtual.clock() - began < 0.5
    virtual.pass_time(5.0)
    assert seen.written() == ""  # the page has stopped polling


def test_switches_have_their_state(seen: PhoneScreen) -> None:
    seen.backend.execute(PhoneCommand("POST", "/open_app", {"package": "com.android.settings"}), Moment(0, 0))
    seen.backend.execute(PhoneCommand("POST", "/tap_text", {"text": "Network"}), Moment(0, 0))
    network = seen.screen()
    nodes = network["screen"]["nodes"]
    assert {node["contentDescription"]: node["checked"] for node in nodes if node.get("checked") is not None} == {
        "Wi-Fi": True,
        "Mobile data": True,
    }
    seen.backend.execute(PhoneCommand("POST", "/tap_text", {"text": "Wi-Fi"}), Moment(0, 0))
    flipped = seen.screen()
    assert [node["checked"] for node in flipped["screen"]["nodes"] if node.get("checked") is not None] == [False, True]
    assert flipped["tag"] != network["tag"]  # so that a waiting request ends


def test_touches_of_the_user(seen: PhoneScreen) -> None:
    mail = next(node for node in seen.screen()["screen"]["nodes"] if node["text"] == "Mail")["bounds"]
    x, y = (mail["left"] + mail["right"]) // 2, (mail["top"] + mail["bottom"]) // 2
    assert seen.request("POST", "/touch", {"kind": "tap", "x": x, "y": y}).json == {"ok": True}
    assert seen.backend.foreground == "com.example.mail"
    assert seen.backend.gestures[-1].kind == "tap"
    assert seen.request("POST", "/touch", {"kind": "key", "key": "home"}).status == 200
    assert seen.backend.foreground != "com.example.mail"
    assert seen.request("POST", "/touch", {"kind": "key", "key": "lock_screen"}).status == 200
    refused = seen.request("POST", "/touch", {"kind": "tap", "x": x, "y": y})
    assert (refused.status, refused.json["code"]) == (400, "not_done")
    assert "lock screen" in refused.json["error"]
    assert seen.screen()["screen_on"] is False
    assert seen.request("POST", "/touch", {"kind": "wake"}).status == 200
    assert seen.screen()["screen_on"] is True


def test_confirmations_of_the_user(seen: PhoneScreen, virtual: SimulatedEnvironment) -> None:
    client = virtual.client()
    body = {"to": "+15550100", "body": "Late"}
    for allow, status in ((True, 200), (False, 403)):
        sending = client.begin("POST", "/send_sms", body, headers=bearer(seen.token))
        virtual.wait_until(lambda: bool(seen.service.phone.gate.confirmations()))
        state = seen.screen()
        (question,) = state["questions"]
        assert (question["path"], question["verb"]) == ("/send_sms", None)
        assert "Late" in question["text"]
        assert 0 < state["seconds_left"][question["id"]] <= 25
        answer = {"question": question["id"], "allow": allow}
        assert seen.request("POST", "/answer", answer).json == {"ok": True}
        assert sending.finish().status == status
        late = seen.request("POST", "/answer", answer)
        assert (late.status, late.json["code"]) == (409, "not_open")
    assert len(seen.backend.outbox) == 1
    sending = client.begin("POST", "/send_sms", body, headers=bearer(seen.token))
    virtual.wait_until(lambda: bool(seen.service.phone.gate.confirmations()))
    (question,) = seen.screen()["questions"]
    answer = {"question": question["id"], "allow": True, "remember": True}
    assert seen.request("POST", "/answer", answer).json == {"ok": True}
    assert sending.finish().status == 200
    assert client.begin("POST", "/send_sms", body, headers=bearer(seen.token)).finish().status == 200  # trusted


def test_text_to_the_agent(seen: PhoneScreen, virtual: SimulatedEnvironment) -> None:
    """Report an unreachable agent, since this world has none."""
    before = seen.screen()
    assert (before["talk"], before["awaits"]) == ([], False)
    for aloud, channel in ((False, "chat"), (True, "voice")):
        assert seen.request("POST", "/say", {"text": "Which app.wav", "aloud": aloud}).json == {"ok": True}
        virtual.wait_until(lambda: seen.screen()["talk"][-1]["kind"] == "note")
        person, note = seen.screen()["talk"][-2:]
        assert (person["kind"], person["text"]) == (
            "person",
            "Which app.wav",
        )  # the path of a page's text is not opened as a file
        assert note["text"].startswith(f"{channel}: ")
    assert seen.screen()["awaits"] is False


def test_the_toggle(virtual: SimulatedEnvironment) -> None:
    seen = PhoneScreen(virtual, safety=SafetySettings())
    assert seen.screen()["device_control"] is False
    assert order(virtual, seen, "/open_app", {"package": "com.example.mail"}) == 403
    assert seen.request("POST", "/toggle", {"on": True}).json == {"ok": True}
    assert seen.screen()["device_control"] is True
    assert seen.request("POST", "/toggle", {"on": False}).status == 200
    seen.service.phone.controls.set_switch(Switch.ACCESSIBILITY, False)
    refused = seen.request("POST", "/toggle", {"on": True})
    assert (refused.status, refused.json["error"]) == (409, seen.screen()["hint"])
    assert seen.screen()["screen"] == {"error": "no accessibility window is readable"}


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/touch", b""),
        ("/touch", []),
        ("/touch", {"kind": "send_sms", "to": "+1", "body": "x"}),
        ("/touch", {"kind": ["tap"]}),
        ("/touch", {"kind": "tap", "x": "left"}),
        ("/answer", {"question": 1, "allow": True}),
        ("/answer", {"question": "c1", "allow": "yes"}),
        ("/answer", {"question": "c1", "allow": True, "remember": 1}),
        ("/toggle", {"on": 1}),
        *(("/say", body) for body in ({"text": " "}, {"text": 7}, {"text": "hi", "aloud": "yes"})),
    ],
)
def test_invalid_requests(virtual: SimulatedEnvironment, path: str, body: object) -> None:
    answer = PhoneScreen(virtual).request("POST", path, body)
    assert answer.status == 400
    assert answer.json["error"]


def test_access_to_the_screen(seen: PhoneScreen) -> None:
    good = seen.headers
    for headers in (
        {},
        {"authorization": "Bearer x"},
        {**good, "origin": "http://127.0.0.1:9119"},
        {**good, "host": "rebound.example"},
        {**good, "x-forwarded-for": "203.0.113.7"},
    ):
        answer = seen.request("GET", "/screen", headers=headers)
        assert (answer.status, answer.json["code"]) == (403, "not_yours"), headers
    shown = seen.request("GET", "/screen", headers=good)
    assert (shown.status, shown.headers.get(b"cache-control")) == (200, b"no-store")
    assert json.loads(seen.written()) == {
        "url": f"http://127.0.0.1:{seen.server.port}",
        "secret": good["authorization"].removeprefix("Bearer "),
    }


def test_session_is_stored_for_the_next_start(seen: PhoneScreen, virtual: SimulatedEnvironment) -> None:
    virtual.wait_until(lambda: seen.written(PHONE_SESSION) == seen.token)


def playbook(backend: ScriptedBackend) -> tuple[Playbook, PhoneScreenServer]:
    phone = PhoneScreenServer(
        PhoneConfig(remote="ws://127.0.0.1:1", code="ABC123"), backend, SafetySettings(), url="http://x"
    )
    return Playbook(Engine(phone, entropy=counting_entropy())), phone


def test_unwritable_home() -> None:
    """Run although neither the secret nor the session can be stored; the failures are logged without the token.

    A request with an empty bearer is refused while the secret is being stored.
    """
    book, phone = playbook(ScriptedBackend())
    book >> Started()
    (order,) = book.drain_commands()
    book >> accepted(2) << []
    book >> Received(CH, b"GET /screen HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: \r\n\r\n")
    assert b" 403 " in wire_bytes(book.drain_commands())
    assert isinstance(order, WriteConfig)
    book.fail(order)
    assert Ready() in book.drain_commands()  # the phone runs nevertheless
    assert [(record.level, record.event) for record in book.logs] == [
        (Level.ERROR, "no dashboard will find the screen")
    ]
    phone.engine.timers.timer(lambda: phone._on_notify(Notify("paired", {"token": "t0ken"}))).set(book.now.mono)
    (order,) = book.after(0.0).drain_commands()
    assert isinstance(order, WriteConfig)
    assert order == WriteConfig(order.op, PHONE_SESSION, "t0ken")
    book.fail(order) << []
    assert book.logs[-1].event == "the session is not kept"
    assert "t0ken" not in repr(book.logs)
    book >> Accepted(ChannelId(4), KEYBOARD, LOCAL) << []  # the keyboard of the phone itself


def test_unexpected_backend_replies() -> None:
    backend = ScriptedBackend()
    backend.answers = {
        "/screen": DelayedReply(1.0, CommandReply(200, {})),
        "/tap": DelayedReply(1.0, CommandReply(200, {})),
    }
    book, phone = playbook(backend)
    book >> Started()
    (order,) = book.drain_commands()
    assert isinstance(order, WriteConfig)
    book.answer(order, None).drain_commands()
    assert phone._state()["screen"] == {}
    book >> accepted(2) << []
    body = b'{"kind":"tap","x":1,"y":2}'
    secret = json.loads(order.text)["secret"].encode()
    head = b"POST /touch HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer %s\r\nContent-Length: %d\r\n\r\n"
    book >> Received(CH, head % (secret, len(body)) + body)
    assert b" 200 " in wire_bytes(book.drain_commands())
