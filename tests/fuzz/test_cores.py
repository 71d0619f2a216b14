"""Tests of the driver of whole cores: what its scripts reach, and faults that its rules notice."""

from collections.abc import Callable
from typing import Any

import pytest

from fuzz.cores.clients import CoreClient
from fuzz.cores.script import ACTIONS, SPEECH, CoreScriptRun, ServiceKind, run_core_script
from fuzz.corpus_paths import corpus
from runtimes.sim.contract import ContractError
from svc_proto.basics.moment import Moment
from svc_proto.commands import CloseWrite, Level, Send
from svc_proto.engine.core import Engine
from svc_proto.facts import Accepted, ChannelId, Sent
from svc_proto.machines.bridge_commands import BridgeCommands
from svc_proto.relay.websocket.client_connection import ClientConnection

WELCOMED = 200


def paired(*, http2: bool = False) -> CoreScriptRun:
    """Return a script run of a relay that has a paired phone."""
    play = CoreScriptRun(ServiceKind.RELAY)
    play.connect(int(http2), 0)
    play.send_request(0, 0)
    play.send_envelope(0, 0)
    play.answer_all(0, 0)
    return play


def client_of(play: CoreScriptRun, who: int = 0) -> CoreClient:
    client = play.driver.accepted_peers[who].client
    assert client is not None
    return client


@pytest.mark.parametrize("http2", [False, True])
def test_a_phone_gets_in_and_a_command_reaches_it(http2: bool) -> None:
    play = paired(http2=http2)
    assert len(play.driver.tokens) == 1
    play.connect(int(not http2), 1)
    play.send_request(1, 7)
    assert client_of(play).requests
    play.send_envelope(0, 6)
    assert client_of(play, 1).statuses == [WELCOMED]
    play.driver.finish()


def test_a_chat_is_answered() -> None:
    play = CoreScriptRun(ServiceKind.API)
    play.connect(0, 0)
    for what in (0, 1):  # a chat session, and a turn in it
        play.send_request(0, what)
        play.answer_all(0, 0)
    for _ in range(2):  # the API first requests the phones and the context of the model
        (asked,) = [peer for peer in play.driver.peers.values() if peer.ch % 2]
        play.driver.close(asked)
        play.answer_all(0, 0)
    (model,) = [peer for peer in play.driver.peers.values() if peer.ch % 2]
    for what in (4, 5, 6):
        play.driver.deliver(model, SPEECH[what])
        play.answer_all(0, 0)
    play.drain(0, 255)
    assert client_of(play).statuses == [201, 200]
    assert b'"delta":"hi "' in client_of(play).bodies
    assert b"event: done" in client_of(play).bodies
    play.driver.finish()


def test_terminals_and_uploads_are_reached() -> None:
    reached: set[str] = set()
    for path in corpus("core").iterdir():
        reached |= {type(command).__name__ for command in run_core_script(path.read_bytes()).driver.commands}
    assert {"Spawn", "CreateBlob", "WriteBlob", "Query", "Compute", "Connect", "Abort", "Cancel", "Exit"} <= reached


def test_corpus_has_every_action() -> None:
    handlers = {
        data[at] % len(ACTIONS)
        for data in (path.read_bytes() for path in corpus("core").iterdir())
        for at in range(1, len(data) - 2, 3)
    }
    assert handlers == set(range(len(ACTIONS)))


# --- seeded bugs --------------------------------------------------------------------------------------------------


def test_a_logged_token_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    says = ClientConnection.send

    def telling(self: ClientConnection, channel: str, kind: str, payload: Any, *rest: Any) -> None:
        says(self, channel, kind, payload, *rest)
        if kind == "pong":
            self.relay.engine.log(Level.INFO, "pong", session=self.relay.sessions)
            self.relay.engine.log(Level.INFO, "pong", token=client_of(play).tokens[0])

    monkeypatch.setattr(ClientConnection, "send", telling)
    play = paired()
    with pytest.raises(AssertionError, match="a secret is in a log record: pong"):
        play.send_envelope(0, 4)


def test_an_exception_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(BridgeCommands, "answer", lambda self, *rest: 1 // 0)
    play = paired()
    play.connect(0, 1)
    play.send_request(1, 7)
    with pytest.raises(AssertionError, match="a bug was logged"):
        play.send_envelope(0, 6)


@pytest.mark.parametrize(
    ("client", "kind", "more", "error"),
    [
        (0, Accepted, lambda fact: [CloseWrite(ChannelId(98))], "no such channel"),
        (0, Sent, lambda fact: [Send(fact.ch, b"nonsense\r\n\r\n")], "does not understand the core"),
        (2, Accepted, lambda fact: [Send(fact.ch, bytes(100_000))] * 3, "300000 bytes wait"),
    ],
)
def test_wrong_commands_are_noticed(
    monkeypatch: pytest.MonkeyPatch, client: int, kind: type[object], more: Callable[[Any], list[Any]], error: str
) -> None:
    handle = Engine.handle

    def and_more(self: Engine, fact: Any, now: Moment) -> list[Any]:
        return [*handle(self, fact, now), *(more(fact) if isinstance(fact, kind) else [])]

    monkeypatch.setattr(Engine, "handle", and_more)

    def use(play: CoreScriptRun) -> None:
        play.connect(client, 0)
        play.send_request(0, 1)
        play.drain(0, 255)

    with pytest.raises((AssertionError, ContractError), match=error):
        use(CoreScriptRun(ServiceKind.RELAY))


def test_time_that_stands_still_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    play = paired()
    monkeypatch.setattr(Engine, "next_deadline", lambda self: self.now.mono)
    with pytest.raises(AssertionError, match="stays at"):
        play.wait(1, 3)


def test_a_process_that_does_not_end_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    play = paired()
    monkeypatch.setattr(Engine, "exit", lambda self, code, reason="": None)
    with pytest.raises(AssertionError, match="does not end"):
        play.driver.finish()
