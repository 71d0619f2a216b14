from svc_proto.agent.interface import TextDelta
from svc_proto.api.chat.store_requests import GetChat
from svc_proto.api.gateway.connection import GatewayConnection
from svc_proto.api.gateway.live_session import MAX_MESSAGE_IDS
from tests.api.gateway_client import open_chat, open_gateway
from tests.api.scripted_agent import TurnHarness


def test_a_long_turn_gives_a_sign_of_life_every_minute() -> None:
    book, phone, _ = open_chat("Hi")
    phone.take()
    for _ in range(3):
        book.after(60.0)
    assert phone.kinds() == ["status.update"] * 3
    book.hand.finish()
    phone.take()
    book.after(600.0)
    assert phone.kinds() == []


def test_a_turn_that_began_before_its_client_attached_gives_signs_of_life() -> None:
    book = TurnHarness()
    session = book.session()
    book.chat(session)
    phone = open_gateway(book)
    phone.call("session.activate", session_id=session)
    book.after(60.0)
    assert phone.kinds() == ["status.update"]


def test_a_client_that_attaches_between_two_texts_misses_none_twice() -> None:
    book, _, session = open_chat("Hi")
    live = book.api.gateway.sessions[session]
    late = open_gateway(book)
    connections = [each for each in book.engine.revocables if isinstance(each, GatewayConnection)]

    def act() -> None:
        book.hand.host.emit(TextDelta("early"))
        live.attach(connections[-1])

    book.within(act)
    assert late.take() == []  # the late client gets the earlier text with the snapshot of the session
    book.hand.emit(TextDelta("late"))
    assert [event["payload"]["text"] for event in late.take()] == ["late"]


def test_a_client_whose_socket_closes_during_its_call_is_not_kept() -> None:
    book, phone, session = open_chat()
    book.api.gateway.sessions.clear()
    book.hold = (GetChat,)
    phone.begin("session.resume", session_id=session)
    phone.vanish()
    book.release()
    book.release()
    assert not book.api.gateway.sessions[session].connections


def test_oldest_id_of_a_prompt_is_forgotten() -> None:
    book = TurnHarness()
    live = book.api.gateway.sessions[open_gateway(book).new_session()]
    ids = [str(number) for number in range(MAX_MESSAGE_IDS)]
    assert all(map(live.accept, ids))
    assert not any(map(live.accept, ids))
    assert live.accept("one more")
    assert [live.accept(ids[1]), live.accept(ids[0])] == [False, True]
