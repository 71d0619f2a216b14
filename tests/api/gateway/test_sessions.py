import pytest

from svc_proto.api.config import ApiConfig
from svc_proto.schema.json_rpc import INVALID_PARAMS
from tests.api.gateway_client import open_gateway
from tests.api.harness import KEY
from tests.api.scripted_agent import TurnHarness, call_of


def test_a_created_session_is_stored_and_described() -> None:
    book = TurnHarness()
    phone = open_gateway(book)
    made = phone.call("session.create", cols=80, source="w" * 64, title=" My  trip ", profile="default")
    assert made["session_id"] == made["stored_session_id"]
    info = made["info"]
    assert (info["profile_name"], info["title"], info["provider"]) == ("default", "My trip", "builtin")
    assert (info["running"], info["approval_mode"], info["personality"]) == (False, "manual", "none")
    row = book.request("GET", f"/api/sessions/{made['session_id']}").json
    assert (row["title"], row["source"]) == ("My trip", "w" * 64)
    assert phone.call("session.list")["sessions"][0]["title"] == "My trip"


@pytest.mark.parametrize(
    ("params", "code"),
    [
        ({"profile": "work"}, 4002),
        ({"reasoning_effort": "immense"}, 4002),
        ({"source": "x" * 65}, INVALID_PARAMS),
        ({"source": "a\nb"}, INVALID_PARAMS),
        ({"title": "x" * 200}, INVALID_PARAMS),
    ],
)
def test_a_session_is_refused_before_it_is_stored(params: dict[str, object], code: int) -> None:
    book = TurnHarness()
    phone = open_gateway(book)
    assert phone.refusal("session.create", **params)[0] == code
    assert phone.call("session.list", limit=5)["sessions"] == []


def test_unknown_sessions_are_named_by_their_code() -> None:
    phone = open_gateway(TurnHarness())
    assert phone.refusal("session.resume", session_id="none")[0] == 4007
    assert phone.refusal("session.activate", session_id="none")[0] == 4001
    assert phone.refusal("session.activate")[0] == INVALID_PARAMS
    assert phone.refusal("session.resume", session_id="none", profile="work")[0] == 4002


def test_the_messages_of_a_session_are_resumed() -> None:
    book = TurnHarness()
    session = book.session(title="Old")
    book.chat(session)
    call = call_of(path="/")
    book.hand.store_calls(call)
    book.hand.store_result(call, "x" * 300)
    book.hand.finish()
    found = open_gateway(book).call("session.resume", session_id=session)
    assert found["resumed"] == session
    tool = {"role": "tool", "name": "terminal", "context": "x" * 200}
    assert found["messages"] == [{"role": "user", "text": "Hi"}, tool]


def test_a_title_is_read_and_set() -> None:
    phone = open_gateway(TurnHarness())
    session = phone.new_session()
    assert phone.call("session.title", session_id=session) == {"title": ""}
    assert phone.call("session.title", session_id=session, title="New") == {"title": "New"}
    assert phone.call("session.title", session_id=session)["title"] == "New"
    assert phone.call("session.title", session_id=session, title="") == {"title": ""}
    assert phone.call("terminal.resize", session_id=session, cols=120) == {"cols": 120}


def test_context_is_measured_where_the_model_has_a_size() -> None:
    config = ApiConfig(key=KEY, model_base_url="http://127.0.0.1:9/v1", model="small", model_context=8192)
    book = TurnHarness(config)
    phone = open_gateway(book)
    session = phone.new_session(reasoning_effort="low")
    phone.call("prompt.submit", session_id=session, text="Hi")
    assert book.hand.turn.options == {"reasoning_effort": "low"}
    from svc_proto.agent.interface import ModelCallFinished

    book.hand.emit(ModelCallFinished(100, 20))
    book.hand.finish()
    info = phone.last("session.info")
    assert info["usage"] == {"context_used": 120, "context_max": 8192}
    assert (info["model"], info["provider"], info["reasoning_effort"]) == ("small", "custom", "low")
    assert phone.last("message.complete")["usage"]["input"] == 100
