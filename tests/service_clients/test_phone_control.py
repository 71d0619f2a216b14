import json
from collections.abc import Callable
from typing import Any

import pytest

from clients.phone.emulator import EmulatedPhone
from svc_proto.basics.errors import ToolError
from svc_proto.basics.moment import Moment
from svc_proto.engine.core import Engine
from svc_proto.engine.flow import Flow
from svc_proto.engine.http_client import HttpResult
from svc_proto.engine.sync import gather
from svc_proto.facts import Failure, FailureKind
from svc_proto.phone.backend import CommandReply, CommandResponse, PhoneCommand
from svc_proto.service_clients import phone_control
from svc_proto.service_clients.phone_control import FILE, NO_RELAY, NO_TOKEN, PhoneResponse, RelayPhoneControl
from svc_proto.wire.events import Headers
from tests.agent.harness import HOME, AgentHarness
from tests.support.playbook import IdleService
from tests.support.servers.model_server import ScriptedModel

PATH = f"{HOME}/{FILE}"
URL = "http://127.0.0.1:8767"


Act = Callable[[RelayPhoneControl], Flow[Any]]


def ask(world: AgentHarness, act: Act, *, url: str = URL, token: str = "", times: int = 1, **options: Any) -> list[Any]:
    """Return the result of each of `times` simultaneous acts of one client, or the text of its `ToolError`."""

    def one(link: RelayPhoneControl) -> Flow[object]:
        try:
            return (yield from act(link))
        except ToolError as failure:
            return str(failure)

    def plan(parts: object, engine: Engine) -> Flow[list[object]]:
        link = RelayPhoneControl(engine, url, token, **options)
        assert link.engine is engine
        return (yield from gather(engine, [one(link) for _ in range(times)]))

    return world.run(plan)


def call(world: AgentHarness, **options: Any) -> list[Any]:
    """Return the answers of calls as in `ask`."""
    return ask(world, lambda link: link.call("GET", "/ping", {"a": True, "b": "x y"}), **options)


def patch_fetch(monkeypatch: pytest.MonkeyPatch, answer: Callable[[str], object]) -> list[tuple[str, str, Any]]:
    """Answer the client's requests by their URL; return the list of their methods, URLs and options."""
    asked: list[tuple[str, str, Any]] = []

    def fetch(engine: Engine, method: str, url: str, **more: Any) -> Flow[object]:
        yield from ()
        asked.append((method, url, more))
        return answer(url)

    monkeypatch.setattr("svc_proto.service_clients.service_client.fetch", fetch)
    return asked


def devices(world: AgentHarness) -> list[str]:
    return [session.device_name for session in world.relay.sessions.active(world.relay.engine.now)]


def codes(answers: list[Any]) -> list[object]:
    return [answer.body.get("code") if isinstance(answer, PhoneResponse) else answer for answer in answers]


def test_agent_pairs_once_and_stores_the_token() -> None:
    """Pair once for the bridge, without an end of the blocks of other addresses."""
    world = AgentHarness(relay=True)
    relay = world.relay
    for _ in range(5):
        relay.limiter.failure("203.0.113.7", relay.engine.now)
    assert codes(call(world, times=3)) == ["phone_not_connected"] * 3
    assert relay.limiter.blocked_for("203.0.113.7", relay.engine.now) > 0
    assert world.logs == [("agent paired with the relay", {})]
    stored = json.loads(world.disk.get(PATH))
    assert stored["url"] == URL
    assert codes(call(world)) == ["phone_not_connected"]
    assert json.loads(world.disk.get(PATH)) == stored
    assert devices(world) == ["Agent on this host"]
    assert world.logs == []
    world.sim.run_for(2.0)
    session = relay.sessions.lookup(stored["token"], relay.engine.now)
    assert session is not None
    assert session.grants == {"bridge": session.expires_at}


class Sulking(EmulatedPhone):
    """Phone that answers every command with 401, as the relay refuses an unknown token."""

    asked = 0

    def execute(self, command: PhoneCommand, now: Moment) -> CommandResponse:
        self.asked += 1
        return CommandReply(
            401, {"ok": False, "error": "the session token is unknown or expired", "code": "unauthorized"}
        )


@pytest.mark.parametrize("own", [False, True])
def test_phone_401_is_an_answer(own: bool) -> None:
    backend = Sulking()
    world = AgentHarness(phone=True, backend=backend)
    token = ""
    if own:
        token = world.relay.sessions.create(world.relay.engine.now, world.relay.engine.entropy)[0]
    first, second = call(world, token=token)[0], call(world, token=token)[0]
    assert (first.status, second.status, backend.asked) == (401, 401, 2)
    assert devices(world).count("Agent on this host") == (0 if own else 1)


@pytest.mark.parametrize("times", [1, 3])
def test_refused_stored_token_is_replaced(times: int) -> None:
    world = AgentHarness(relay=True)
    world.disk.put(PATH, json.dumps({"url": URL, "token": "00000000-old"}).encode())
    assert codes(call(world, times=times)) == ["phone_not_connected"] * times
    assert json.loads(world.disk.get(PATH))["token"] != "00000000-old"
    assert devices(world) == ["Agent on this host"]


def test_configured_token_is_used_exclusively() -> None:
    world = AgentHarness(relay=True)
    assert call(world, token="00000000-wrong") == [
        "the relay does not accept the session token of the agent (SVC_RELAY_TOKEN)"
    ]
    assert devices(world) == []
    assert not world.disk.exists(PATH)
    call(world)
    token = json.loads(world.disk.get(PATH))["token"]
    world.disk.remove(PATH)
    assert codes(call(world, token=token)) == ["phone_not_connected"]
    assert call(world, token="a\nb") == ["SVC_RELAY_TOKEN has characters that no token has"]


@pytest.mark.parametrize(
    "text", [b"{", b"[]", b"{}", b'{"url": "http://127.0.0.1:8767", "token": "a b"}', b'{"url": "u", "token": "t"}']
)
def test_invalid_stored_token_is_ignored(text: bytes) -> None:
    world = AgentHarness(relay=True)
    world.disk.put(PATH, text)
    assert codes(call(world)) == ["phone_not_connected"]


def test_a_token_is_never_sent_to_another_relay() -> None:
    world = AgentHarness(relay=True)
    call(world)
    text = world.disk.get(PATH)
    world.disk.put(PATH, text.replace(URL.encode(), b"http://127.0.0.1:8768"))
    assert codes(call(world)) == ["phone_not_connected"]
    assert len(devices(world)) == 2  # paired again, although the stored token was valid
    assert world.disk.get(PATH) != text


def test_unstored_token_is_used() -> None:
    world = AgentHarness(relay=True)
    world.disk.capacity = 0
    assert codes(call(world)) == ["phone_not_connected"]
    assert ("relay token not stored", {"problem": "no_space"}) in world.logs


def test_a_relay_elsewhere_needs_a_token() -> None:
    assert call(AgentHarness(relay=True), url="http://10.0.0.1:8767") == [NO_TOKEN]
    assert call(AgentHarness(), url="nonsense") == [NO_TOKEN]


def test_no_relay() -> None:
    world = AgentHarness()
    assert call(world) == ["the relay cannot be reached (SVC_RELAY_URL): unreachable"]
    assert ("agent not paired", {"problem": "unreachable"}) in world.logs
    assert call(world, token="t") == ["the relay cannot be reached (SVC_RELAY_URL): unreachable"]


def there(world: AgentHarness, **options: Any) -> bool:
    (found,) = ask(world, RelayPhoneControl.is_phone_connected, **options)
    return found is True


def test_phone_connected_status() -> None:
    assert there(AgentHarness(phone=True))
    assert not there(AgentHarness(relay=True))
    assert not there(AgentHarness())
    assert not there(AgentHarness(phone=True, backend=EmulatedPhone(build="googlePlay")))
    assert not there(AgentHarness(), url="http://10.0.0.9:8767")
    assert there(AgentHarness(), url="http://10.0.0.9:8767", token="t")


@pytest.mark.parametrize(
    ("body", "able"),
    [(b'{"phone_connected": true}', True), (b'{"phone_connected": true, "bridge": {}}', True), (b"no", False)],
)
def test_phone_connected_status_of_the_relay(body: bytes, able: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = patch_fetch(monkeypatch, lambda url: HttpResult(200, Headers([]), body))
    assert there(AgentHarness()) is able
    assert [url for _, url, _ in asked] == [f"{URL}/bridge/status"]


@pytest.mark.parametrize(("safety", "asks"), [(b'{"mode": "ask"}', True), (b"{}", False)])
def test_calls_are_marked_for_a_phone_with_gates(safety: bytes, asks: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    status = b'{"phone_connected": true, "safety": %s}' % safety
    asked = patch_fetch(monkeypatch, lambda url: HttpResult(200, Headers([]), status))
    (found,) = ask(AgentHarness(), lambda link: link.gate_bound_arguments({"device": "a b"}))
    assert found == ({"device": "a b", "asks_its_user": True} if asks else None)
    assert [url for _, url, _ in asked] == [f"{URL}/bridge/status?device=a+b"]


@pytest.mark.parametrize(("url", "token", "yes"), [(URL, "", True), ("http://x", "", False), ("http://x", "t", True)])
def test_configured_with_a_local_url_or_a_token(url: str, token: str, yes: bool) -> None:
    assert RelayPhoneControl(Engine(IdleService(), entropy=bytes), url, token).configured is yes


def test_other_server_instead_of_the_relay() -> None:
    world = AgentHarness()
    world.serve(ScriptedModel(), 8767)
    (refusal,) = call(world)
    assert refusal == f"the relay did not let the agent in (the relay gave no pairing code: 404). {NO_TOKEN}"


def test_relay_refusing_a_fresh_token(monkeypatch: pytest.MonkeyPatch) -> None:
    world = AgentHarness(relay=True)

    def pair(engine: Engine, url: str, name: str) -> Flow[str]:
        yield from ()
        return "00000000-made-up"

    monkeypatch.setattr(phone_control, "pair_locally", pair)
    assert call(world, times=2) == ["the relay does not accept the session token of the agent (SVC_RELAY_TOKEN)"] * 2


@pytest.mark.parametrize(
    ("status", "body", "members"),
    [
        (200, b"", {}),
        (200, b"{}", {}),
        (200, b'{"a": 1}', {"a": 1}),
        (200, b"[1]", {"value": "[1]"}),
        (399, b"399: no", {"value": "399: no"}),
        (400, b"400: no", {"error": "400: no"}),
        (502, b"\xff", {"error": "\ufffd"}),
    ],
)
def test_bodies(status: int, body: bytes, members: dict[str, object], monkeypatch: pytest.MonkeyPatch) -> None:
    asked = patch_fetch(monkeypatch, lambda url: HttpResult(status, Headers([]), body))
    assert call(AgentHarness(), token="t") == [PhoneResponse(status, members)]
    assert [(url, more.get("body", b"")) for _, url, more in asked] == [(f"{URL}/ping?a=true&b=x+y", b"")]


def test_unverifiable_401_is_passed_on(monkeypatch: pytest.MonkeyPatch) -> None:
    gone, refused = Failure(FailureKind.UNREACHABLE), HttpResult(401, Headers([]), b"{}")
    patch_fetch(monkeypatch, lambda url: gone if url.endswith("/sessions") else refused)
    assert call(AgentHarness(), token="t") == [PhoneResponse(401, {})]


@pytest.mark.parametrize(
    ("token", "answer", "outcome"),
    [
        ("t-0", HttpResult(200, Headers([]), b"picture"), b"picture"),
        ("t-0", HttpResult(404, Headers([]), b"{}"), "the relay does not hand out the phone's picture (404)"),
        ("t-0", Failure(FailureKind.UNREACHABLE), f"{NO_RELAY}: unreachable"),
        ("../x", HttpResult(200, Headers([]), b"picture"), "the phone gave no picture"),
    ],
)
def test_a_file_of_the_phone(token: str, answer: object, outcome: bytes | str, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = patch_fetch(monkeypatch, lambda url: answer)
    assert ask(AgentHarness(), lambda link: link.media(token), token="mine") == [outcome]
    for method, url, more in asked:
        assert (method, url, more["headers"]) == ("GET", f"{URL}/media/t-0", ((b"authorization", b"Bearer mine"),))


@pytest.mark.parametrize(
    ("url", "answer", "outcome"),
    [
        (URL, HttpResult(200, Headers([]), b'{"activity":[{"asked_by":"Me","path":"/a"},{"asked_by":"You"}]}'), ["/a"]),
        (URL, HttpResult(403, Headers([]), b"{}"), "the relay does not tell what was done (403)"),
        (URL, Failure(FailureKind.UNREACHABLE), f"{NO_RELAY}: unreachable"),
        ("http://10.0.0.1", HttpResult(200, Headers([]), b"{}"), "a relay on another host does not tell what was done"),
    ],
)
def test_activity_over_the_relay(url: str, answer: object, outcome: object, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = patch_fetch(monkeypatch, lambda url: answer)
    (told,) = ask(AgentHarness(), lambda link: link.activity(), url=url, token="mine", who="Me")
    assert (told if isinstance(told, str) else [row["path"] for row in told]) == outcome
    assert {(method, address) for method, address, _ in asked} <= {("GET", f"{URL}/bridge/activity")}


@pytest.mark.parametrize(
    ("url", "count", "unneeded"),
    [
        ("http://127.0.0.1:8767", 1, ("device",)),
        ("http://127.0.0.1:8767", 2, ()),
        ("http://127.0.0.1:9", 2, ("device",)),  # no relay there
        ("http://relay.example:8767", 2, ("device",)),  # the number is unknown
    ],
)
def test_selector_is_needed_for_several_phones(
    url: str, count: int, unneeded: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    world = AgentHarness(relay=True)
    monkeypatch.setattr(world.relay.phones, "devices_report", lambda now: {"devices": [], "count": count})

    assert ask(world, lambda link: link.unneeded_arguments(), url=url) == [unneeded]
