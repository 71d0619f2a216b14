"""The TUI message channel: lines of JSON-RPC to and from an agent gateway (wire terminal 2)."""

import json
from typing import Any

import pytest
from attrs import evolve

from svc_proto.basics.brand import HERMES
from svc_proto.commands import Level, SignalName, Spawn
from svc_proto.facts import FailureKind
from svc_proto.machines.line_buffer import MAX_LINE
from svc_proto.relay.terminals import tui_channel
from svc_proto.relay.terminals.tui_channel import MAX_GATEWAYS, MAX_UNREAD, MAX_WAITING
from svc_proto.relay_config import RelayConfig
from svc_proto.version import VERSION
from svc_proto.wire.limits import DEFAULT_LIMITS
from tests.relay.child_process_harness import GRANTS, ChildProcessHarness, desktop_relay, with_tui
from tests.relay.phone_client import PhoneClient
from tests.support.channel_ends import HarnessChild

READY = b'{"jsonrpc":"2.0","method":"event","params":{"type":"gateway.ready","payload":{}}}\n'


def attached(**options: Any) -> tuple[ChildProcessHarness, PhoneClient, HarnessChild]:
    """Return a relay, its client, and the gateway to which the client is attached."""
    book, phone = desktop_relay(config=options.pop("config", None) or with_tui(), **options)
    phone.send("tui", "tui.attach", {"cols": 80, "rows": 24}, "a-1")
    answer = phone.only()
    assert (answer["channel"], answer["type"]) == ("tui", "tui.attached")
    assert "agent gateway opened" in book.events(Level.INFO)
    assert answer["id"] != "a-1"
    assert answer["payload"] == {"pid": book.children[-1].pid, "server_version": VERSION}
    return book, phone, book.children[-1]


def request(phone: PhoneClient, identity: object = "r1", method: str = "session.list") -> list[dict[str, Any]]:
    """Send a request to the gateway and return the envelopes that follow at once."""
    phone.send("tui", "tui.rpc.request", {"jsonrpc": "2.0", "id": identity, "method": method, "params": {}})
    return phone.envelopes()


def starting() -> tuple[ChildProcessHarness, PhoneClient]:
    """Return a relay and a client whose gateway is still starting."""
    book, phone = desktop_relay(config=with_tui())
    book.hold = (Spawn,)
    phone.send("tui", "tui.attach", {})
    return book, phone


def choked(*, max_unsent: int) -> tuple[PhoneClient, HarnessChild]:
    """Return a client that reads nothing and a gateway that has written too much for it."""
    limits = evolve(DEFAULT_LIMITS, high_water=5000, low_water=1000, max_unsent=max_unsent)
    _, phone, gateway = attached(limits=limits)
    phone.reads = False
    gateway.write_output(json.dumps({"id": "big", "result": "x" * 100_000}).encode() + b"\n")
    return phone, gateway


def is_held(child: HarnessChild) -> bool:
    return child.held


def test_the_gateway_finds_its_server_and_the_rights_of_its_device() -> None:
    _, _, gateway = attached()
    assert gateway.order.argv == ("/bin/agent", "--lines")
    assert gateway.order.terminal is None
    assert gateway.order.stderr is not None
    names = {name for name, _ in gateway.order.env}
    assert names == {"SVC_AGENT_PRINCIPAL"}  # the gateway finds the API server of this host itself
    config = with_tui({"webapi_url": "https://api.example", "api_key": "s3cret", "brand": HERMES})
    book = ChildProcessHarness(config=config)
    book.client().send("tui", "tui.attach", {"cols": 1, "profile": "work", "resume_session_id": "s-1"})
    found = dict(book.children[0].order.env)
    assert found.pop("SVC_AGENT_PRINCIPAL").endswith(" Unknown device")
    assert found == {
        "RELAY_WEBAPI_URL": "https://api.example",
        "API_SERVER_KEY": "s3cret",
        "HERMES_PROFILE": "work",
        "HERMES_TUI_RESUME": "s-1",
    }
    book.secrets.add("s3cret")
    assert book.leaks() == []
    pin = f"sha256/{'A' * 43}="
    config = with_tui({"webapi_url": "https://api.example", "webapi_inside": "http://127.0.0.1:9", "webapi_pin": pin})
    book = ChildProcessHarness(config=config)
    book.client().send("tui", "tui.attach", {"cols": 1})
    found = dict(book.children[0].order.env)
    assert found.pop("SVC_AGENT_PRINCIPAL")
    assert found == {"RELAY_WEBAPI_URL": "http://127.0.0.1:9", "RELAY_WEBAPI_PIN": pin}
    book = ChildProcessHarness(config=with_tui({}))
    book.client(bridge=False, chat=False).send("tui", "tui.attach", {"cols": 1})
    assert dict(book.children[0].order.env)["SVC_AGENT_WITHHELD"] == "chat,bridge,manage"


def test_requests_lines_and_resizes_pass_up_to_the_longest_line() -> None:
    _, phone, gateway = attached()
    assert request(phone) == []
    assert gateway.heard == b'{"jsonrpc":"2.0","id":"r1","method":"session.list","params":{}}\n'
    gateway.write_output(b'{"jsonrpc":"2.0","id":"r1","result":{"sess')
    assert phone.envelopes() == []
    gateway.write_output(b'ions":[]}}\n' + READY)
    answer, event = phone.envelopes()
    assert (answer["type"], answer["payload"]["result"]) == ("tui.rpc.response", {"sessions": []})
    assert (event["type"], event["payload"]["params"]["type"]) == ("tui.rpc.event", "gateway.ready")
    text = "x" * 5_000_000
    _, phone, gateway = attached()
    phone.send("tui", "tui.rpc.request", {"id": "r1", "params": {"text": text}})
    assert json.loads(gateway.heard)["params"]["text"] == text
    gateway.write_output(json.dumps({"id": "r1", "result": text}).encode() + b"\n")
    assert phone.only()["payload"]["result"] == text
    _, phone, gateway = attached()
    phone.send("tui", "tui.resize", {"cols": 97, "rows": 31, "session_id": "s-1", "more": 1})
    line = json.loads(gateway.heard)
    assert line.pop("id").startswith("resize-")
    assert line == {
        "jsonrpc": "2.0",
        "method": "terminal.resize",
        "params": {"session_id": "s-1", "cols": 97, "rows": 31},
    }
    _, phone, gateway = attached()
    gateway.write_output(b"x" * MAX_LINE)
    assert phone.envelopes() == []
    gateway.write_output(b"x")
    assert phone.only()["type"] == "tui.error"
    assert gateway.signals == [SignalName.TERMINATE]
    gateway.write_output(READY)
    gateway.exit()
    assert phone.envelopes() == []


@pytest.mark.parametrize(
    ("lines", "kind"),
    [
        ([b'{"id":null,"error":{}}'], "tui.rpc.response"),
        ([b'{"method":"event","id":"e"}', b"{}"], "tui.rpc.event"),
        ([b"", b"  ", b"\xff", b"[1]", b"starting...", b'{"a":NaN}'], None),
    ],
)
def test_gateway_lines_become_messages(lines: list[bytes], kind: str | None) -> None:
    for line in lines:
        _, phone, gateway = attached()
        gateway.write_output(line + b"\r\n")
        assert [envelope["type"] for envelope in phone.envelopes()] == ([] if kind is None else [kind])


def test_detaching_and_attaching_again_end_the_gateway() -> None:
    book, phone, gateway = attached()
    phone.send("tui", "tui.detach")
    assert gateway.signals == [SignalName.TERMINATE]
    book.after(1.9)
    assert not gateway.gone
    book.after(0.1)
    assert (gateway.signals, gateway.gone) == ([SignalName.TERMINATE, SignalName.KILL], True)
    assert phone.envelopes() == []
    phone.send("tui", "tui.resize", {"cols": 1})
    phone.send("tui", "tui.detach")
    assert phone.envelopes() == []
    (answer,) = request(phone)
    assert answer["type"] == "tui.rpc.response"
    assert answer["payload"] == {
        "jsonrpc": "2.0",
        "id": "r1",
        "error": {"code": -32000, "message": "the agent gateway is not running"},
    }
    book, phone, first = attached()
    phone.send("tui", "tui.attach", {"cols": 80})
    assert first.signals == [SignalName.TERMINATE]
    assert phone.only()["payload"]["pid"] == book.children[1].pid
    first.write_output(READY)
    first.exit(-15)
    assert phone.envelopes() == []
    request(phone)
    assert book.children[1].heard


def test_messages_without_a_gateway_or_meaning() -> None:
    phone = ChildProcessHarness(config=with_tui()).client()
    phone.send("tui", "tui.rpc.request", {"jsonrpc": "2.0", "method": "x"})
    assert phone.envelopes() == []
    _, phone, _ = attached()
    phone.send("tui", "tui.dance", {}, "m-1")
    answer = phone.only()
    assert (answer["channel"], answer["type"], answer["id"]) == ("system", "error", "m-1")


@pytest.mark.parametrize(("status", "named"), [(0, "0"), (3, "3"), (-9, "-9")])
def test_gateway_exit_is_reported(status: int, named: str) -> None:
    _, phone, gateway = attached()
    gateway.write_output(READY)
    gateway.exit(status)
    _, error = phone.envelopes()
    assert (error["type"], error["payload"]) == ("tui.error", {"message": f"the agent gateway exited with {named}"})
    assert request(phone)[0]["payload"]["error"]["code"] == -32000
    phone.send("tui", "tui.attach", {})
    assert phone.only()["type"] == "tui.attached"


def test_gateways_exit_with_a_code_or_end_with_their_socket() -> None:
    _, phone, gateway = attached()
    gateway.vanish("over 67108864 unsent bytes")
    assert "an unknown code" in phone.only()["payload"]["message"]
    book, phone, gateway = attached()
    phone.vanish()
    assert gateway.signals == [SignalName.TERMINATE]
    book.after(2.0)
    assert gateway.gone
    book, phone, gateway = attached()
    book.stop()
    assert gateway.signals == [SignalName.TERMINATE]
    assert book.exits == []
    gateway.exit(0)
    assert [exit_.code for exit_ in book.exits] == [0]
    assert all(envelope["type"] != "tui.error" for envelope in phone.envelopes())


@pytest.mark.parametrize("config", [None, with_tui()])
def test_failed_gateway_start_is_reported(config: RelayConfig | None) -> None:
    book, phone = desktop_relay(config=config)
    book.problem = FailureKind.NOT_FOUND if config is not None else None
    phone.send("tui", "tui.attach", {"cols": 80}, "a-1")
    answer = phone.only()
    assert (answer["channel"], answer["type"], answer["id"]) == ("system", "error", "a-1")
    assert answer["payload"]["error"] == "tui_unavailable"
    assert request(phone)[0]["type"] == "tui.rpc.response"
    phone.send("terminal", "terminal.attach", {})
    assert phone.only()["type"] == "terminal.attached"


def test_a_session_has_a_bounded_number_of_gateways() -> None:
    book = ChildProcessHarness(config=with_tui())
    paired = book.pair(client_surface="desktop", operator={"grants": {"tui": 0}})
    phones = [book.reconnect(paired.token) for _ in range(10)]
    for phone in phones:
        phone.send("tui", "tui.attach", {})
    kinds = [phone.envelopes()[-1]["type"] for phone in phones]
    assert (kinds, len(book.children)) == (["tui.attached"] * 8 + ["error"] * 2, 8)
    phones[0].send("tui", "tui.attach", {})  # replaces its own gateway
    assert phones[0].only()["type"] == "tui.attached"
    phones[1].vanish()
    phones[9].send("tui", "tui.attach", {})
    assert phones[9].only()["type"] == "tui.attached"
    book = ChildProcessHarness(config=with_tui())
    token = book.pair(operator={"grants": GRANTS}).token
    book.hold = (Spawn,)
    phones = [book.reconnect(token) for _ in range(MAX_GATEWAYS + 1)]
    for phone in phones:
        phone.send("tui", "tui.attach", {})
    assert phones[-1].only()["payload"]["error"] == "tui_busy"
    book.hold = ()
    book.release()
    assert [phone.only()["type"] for phone in phones[:-1]] == ["tui.attached"] * MAX_GATEWAYS


def test_messages_behind_an_attach_wait_up_to_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    book, phone = starting()
    assert request(phone, "r1") == request(phone, "r2") == []
    book.hold = ()
    book.release()
    assert [json.loads(line)["id"] for line in book.children[0].heard.splitlines()] == ["r1", "r2"]
    assert phone.only()["type"] == "tui.attached"
    book, phone = starting()
    for _ in range(MAX_WAITING):
        assert request(phone) == []
    (refused,) = request(phone)
    assert (refused["channel"], refused["type"], refused["payload"]["error"]) == ("system", "error", "tui_busy")
    phone.send("tui", "tui.attach", {})  # cancels the first gateway and what waits for it
    assert request(phone) == []
    book.hold = ()
    book.release()
    assert len(book.children) == 1
    assert len(book.children[0].heard.splitlines()) == 1
    payload = '{"jsonrpc":"2.0","id":"r1","method":"x","params":{}}'
    monkeypatch.setattr(tui_channel, "MAX_UNREAD", len(payload))
    for method in ("x", "xx"):
        book, phone = starting()
        for ends in ("cancelled", "done", "pending"):  # the end of a start frees the room for the next one
            told = request(phone, method=method)
            assert [each["payload"]["error"] for each in told] == (["tui_busy"] if method == "xx" else [])
            if ends == "done":
                book.hold = ()
                book.release()
                book.hold = (Spawn,)
            phone.send("tui", "tui.attach", {})
            phone.envelopes()


def test_blocked_gateway_refuses_requests() -> None:
    _, phone, gateway = attached()
    gateway.reads = False
    for _ in range(5):
        phone.send("tui", "tui.rpc.request", {"id": "r1", "params": "x" * (MAX_UNREAD // 5)})
        assert phone.envelopes() == []
    (answer,) = request(phone)
    assert answer["payload"]["error"]["message"] == "the agent gateway does not read"
    phone.send("tui", "tui.resize", {"cols": 5})
    assert phone.envelopes() == []
    gateway.read()
    assert request(phone) == []


def test_slow_clients_pause_their_gateway() -> None:
    _, phone, gateway = attached(limits=evolve(DEFAULT_LIMITS, high_water=5000, low_water=1000))
    phone.reads = False
    for number in range(40):
        if is_held(gateway):
            break
        gateway.write_output(json.dumps({"id": number, "result": list(range(number, 1000 + number))}).encode() + b"\n")
    assert is_held(gateway)
    phone.read()
    assert not is_held(gateway)
    phone.send("tui", "tui.detach")
    phone.reads = False
    request(phone, "x" * 10_000)
    phone.read()
    phone, gateway = choked(max_unsent=20_000)
    for number in range(3):
        gateway.write_output(b'{"n":%d}\n' % number)
    assert is_held(gateway)
    assert [envelope["payload"].get("id") for envelope in phone.envelopes()] == ["big"]
    phone.read()
    assert [envelope["payload"]["n"] for envelope in phone.envelopes()] == [0, 1, 2]
    assert not is_held(gateway)
    assert request(phone) == []


@pytest.mark.parametrize("words", [[], [{"last": "words"}]])
def test_gateway_exit_is_reported_after_its_last_line(words: list[dict[str, str]]) -> None:
    phone, gateway = choked(max_unsent=20_000)
    for word in words:
        gateway.write_output(json.dumps(word).encode() + b"\n")
    gateway.exit(7)
    assert [envelope["payload"].get("id") for envelope in phone.envelopes()] == ["big"]
    phone.read()
    *told, end = phone.envelopes()
    assert [envelope["payload"] for envelope in told] == words
    assert (end["type"], end["payload"]) == ("tui.error", {"message": "the agent gateway exited with 7"})
    phone.reads = False
    phone.send("system", "ping", {"ts": "x" * 50_000})
    phone.read()
    assert [envelope["type"] for envelope in phone.envelopes()] == ["pong"]
    phone.send("tui", "tui.attach", {})
    assert phone.only()["type"] == "tui.attached"


def test_an_exited_gateway_takes_no_requests() -> None:
    phone, gateway = choked(max_unsent=200_000)
    gateway.exit(7)
    phone.envelopes()
    (answer,) = request(phone)
    assert answer["payload"]["error"]["message"] == "the agent gateway is not running"
    phone.send("tui", "tui.resize", {"cols": 5})
    assert gateway.heard == b""
    phone.read()
    assert phone.only()["type"] == "tui.error"
    phone, gateway = choked(max_unsent=200_000)
    gateway.write_output(b'{"last":"words"}\n')
    gateway.exit(7)
    phone.send("tui", "tui.detach", {})
    phone.envelopes()
    phone.read()
    assert phone.envelopes() == []
    assert gateway.signals == []


@pytest.mark.parametrize("kind", ["tui.attach", "tui.rpc.request", "tui.resize", "tui.detach"])
def test_every_message_needs_the_grant(kind: str) -> None:
    book = ChildProcessHarness(config=with_tui())
    phone = book.client(tui=60)
    phone.send("tui", "tui.attach", {})
    phone.envelopes()
    book.after(60)
    phone.send("tui", kind, {"id": "r1"}, "m-1")
    answer = phone.only()
    assert (answer["channel"], answer["type"], answer["id"]) == ("system", "error", "m-1")
    assert answer["payload"] == {"message": "tui grant expired or missing", "error": "grant_required"}
    (gateway,) = book.children
    assert gateway.signals == [SignalName.TERMINATE]


def test_no_output_without_the_grant() -> None:
    book = ChildProcessHarness(config=with_tui())
    phone = book.client(tui=60)
    phone.send("tui", "tui.attach", {})
    phone.envelopes()
    book.after(60)
    book.children[0].write_output(READY)
    assert phone.only()["payload"]["error"] == "grant_required"
    assert book.children[0].signals == [SignalName.TERMINATE]


def test_error_output_and_bugs_are_logged(monkeypatch: pytest.MonkeyPatch) -> None:
    book, phone, gateway = attached()
    gateway.complain(b"Traceback\nmore" + b"x" * 1000)
    gateway.complain(b"y" * 100_000)  # longer than any line
    gateway.complain("語".encode() * 401 + b"\n")
    lines = ["Traceback", "語" * 400]
    assert [log.fields["line"] for log in book.logs if log.event == "agent gateway"] == lines
    assert phone.envelopes() == []
    book, phone = desktop_relay(config=with_tui())
    with monkeypatch.context() as patch:
        patch.setattr(tui_channel, "spawn", lambda *_, **__: 1 / 0)
        phone.send("tui", "tui.attach", {})
    assert phone.only()["payload"]["error"] == "internal_error"
    assert "bug" in book.events(Level.ERROR)
    phone.send("tui", "tui.attach", {})
    assert phone.only()["type"] == "tui.attached"
