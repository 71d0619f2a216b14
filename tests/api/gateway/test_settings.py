import pytest

from svc_proto.schema.json_rpc import INVALID_PARAMS
from tests.api.gateway_client import GatewayClient, open_chat
from tests.api.harness import CONFIG
from tests.api.scripted_agent import TurnHarness
from tests.support.http_harness import as_json

FILE = """
model: {default: small, provider: local-ai, base_url: 'http://127.0.0.1:9999/v1'}
agent: {personalities: {pirate: Arr!, poet: Rhyme.}}
platforms: {api_server: {extra: {model_routes: {fast: {model: tiny}}}}}
"""


def configured(text: str = FILE, status: int = 200) -> tuple[TurnHarness, GatewayClient, str]:
    book, phone, session = open_chat(files={CONFIG: text})
    book.http = lambda asked: as_json({"data": [{"id": "small"}, {"id": "large"}]}, status)
    return book, phone, session


def test_models_are_listed_by_provider() -> None:
    _, phone, session = configured()
    options = phone.call("model.options", session_id=session)
    assert (options["provider"], options["model"]) == ("local-ai", "small")
    assert [(row["slug"], row["name"], row["models"], row["is_current"]) for row in options["providers"]] == [
        ("local-ai", "Local Ai", ["small", "large"], True),
        ("routes", "Routes", ["fast"], False),
    ]
    _, phone, _ = configured(FILE, 500)
    assert phone.call("model.options")["providers"][0]["models"] == ["small"]
    _, phone, _ = configured(FILE.replace("default: small", "default: other"))
    assert phone.call("model.options")["providers"][0]["models"] == ["other", "small", "large"]
    _, phone, _ = configured(FILE.partition("platforms")[0])
    assert len(phone.call("model.options")["providers"]) == 1
    _, phone, session = configured("{}")
    assert phone.call("model.options", session_id=session)["provider"] == "builtin"


def test_a_model_is_chosen_for_a_session() -> None:
    book, phone, session = configured()
    chosen = phone.call("config.set", session_id=session, key="model", value="large --provider local-ai")
    assert chosen["value"] == "large"
    phone.call("prompt.submit", session_id=session, text="Hi")
    assert book.hand.turn.model is not None
    assert book.hand.turn.model.model == "large"
    book.hand.finish()
    assert phone.last("session.info")["model"] == "large"
    assert phone.call("model.options", session_id=session)["model"] == "large"
    phone.call("config.set", session_id=session, key="model", value="fast")
    phone.call("prompt.submit", session_id=session, text="Hi")
    assert book.hand.turn.model.model == "tiny"
    assert phone.call("session.activate", session_id=phone.new_session())["info"]["model"] == "small"
    assert b"default: small" in book.files[CONFIG]


def test_a_model_that_is_gone_is_not_used() -> None:
    book, phone, session = configured()
    phone.call("config.set", session_id=session, key="model", value="large")
    book.http = lambda asked: as_json({"data": [{"id": "small"}]})
    book.after(61.0)  # the list of models is read again
    phone.call("prompt.submit", session_id=session, text="Hi")
    assert book.hand.turn.model is not None
    assert book.hand.turn.model.model == "small"


@pytest.mark.parametrize("params", [{"value": "large"}, {"value": "large --global", "session_id": "own"}])
def test_a_model_is_chosen_for_the_server(params: dict[str, object]) -> None:
    book, phone, session = configured()
    if "session_id" in params:
        params = {**params, "session_id": session}
    phone.call("config.set", key="model", **params)
    assert b"default: large" in book.files[CONFIG]


@pytest.mark.parametrize(
    ("params", "code"),
    [
        ({"key": "model", "value": "huge"}, 4002),
        ({"key": "model", "value": "fast"}, 4002),  # a route is no model of the server's endpoint
        ({"key": "model", "value": "--global"}, INVALID_PARAMS),
        ({"key": "fast", "value": "fast"}, 4002),
        ({"key": "yolo", "value": "1", "scope": "session"}, 4002),
        ({"key": "approvals.mode", "value": "off"}, 4002),
        ({"key": "reasoning", "value": "immense", "session_id": "own"}, 4002),
        ({"key": "personality", "value": "clown", "session_id": "own"}, 4002),
    ],
)
def test_what_the_server_lacks_is_refused(params: dict[str, object], code: int) -> None:
    _, phone, session = configured()
    if "session_id" in params:
        params = {**params, "session_id": session}
    assert phone.refusal("config.set", **params)[0] == code


def test_settings_of_a_session_are_read_back() -> None:
    _, phone, session = configured()
    own = {"session_id": session}
    assert phone.call("config.get", key="personality")["value"] == "none"
    assert phone.call("config.set", key="personality", value="pirate", **own) == {"value": "pirate"}
    assert phone.call("config.get", key="personality", **own)["value"] == "pirate"
    assert phone.call("config.get", key="reasoning")["value"] == "medium"
    assert phone.call("config.set", key="reasoning", value="high", **own) == {"value": "high"}
    assert phone.call("config.get", key="reasoning", **own)["value"] == "high"
    assert phone.call("config.set", key="approvals.mode", value="manual") == {"value": "manual"}
    assert phone.call("config.get", key="approvals.mode") == {"value": "manual"}
    assert phone.refusal("config.get", key="moon")[0] == 4002


def test_personalities_complete_the_command() -> None:
    _, phone, _ = configured()
    items = [item["text"] for item in phone.call("complete.slash", text="/personality ")["items"]]
    assert items == ["/personality none", "/personality pirate", "/personality poet"]
    assert phone.call("complete.slash", text="/personality pi")["items"] == [{"text": "/personality pirate"}]
    assert phone.call("complete.slash", text="/other ")["items"] == []
