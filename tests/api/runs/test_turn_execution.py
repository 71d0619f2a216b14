from svc_proto.api.chat.store_requests import AddMessages, BeginTurn
from tests.api.scripted_agent import TurnHarness


def test_store_requests_are_ordered() -> None:
    book = TurnHarness()
    book.call("POST", "/v1/chat/completions", {"messages": [{"role": "user", "content": "Hi"}]})
    book.hand.finish()
    assert [type(request) for request in book.queries()] == [BeginTurn, AddMessages]
    before = len(book.queries())
    book.chat()
    kinds = [type(request) for request in book.queries()[before:]]
    assert kinds[-1] is BeginTurn


def test_end_of_the_turn_is_logged() -> None:
    book = TurnHarness()
    for finish in ("stop", "error"):
        book.chat(body={"message": "a private message"})
        book.hand.finish(finish)
    ends = [(log.fields["state"], log.fields.get("code")) for log in book.logs if log.event == "turn ended"]
    assert ends == [("completed", None), ("failed", "agent_error")]
    assert "private" not in repr(book.logs)
