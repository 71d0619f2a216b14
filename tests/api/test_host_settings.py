import pytest

from svc_proto.api.config import ApiConfig
from svc_proto.api.host_settings import parse_host_change
from svc_proto.basics.errors import Refused
from svc_proto.commands import Level
from svc_proto.machines.pairing_api_keys import PairingApiKeys
from svc_proto.machines.pairing_codes import PairingMeta
from tests.api.harness import CONFIG, HOME, KEY, ApiCall, ApiHarness
from tests.relay.test_audit import recorded
from tests.support.playbook import counting_entropy

TOKEN = "token-of-a-monitor-1"
PUBLIC = "https://home.example/relay"
NEW = "sk-new-5b1d0e3f7a"
ENV = f"{HOME}/.env"
YAML = "platforms: {api_server: {extra: {key: sk-of-yaml-3c9d1e}}}\n"


@pytest.mark.parametrize(
    "change",
    [
        {},
        {"public_url": PUBLIC},
        {"public_url": "", "brand": "hermes", "metrics_token": TOKEN},
        {"brand": ""},
        {"pair_scope": "phone", "pair_ttl": "0"},
        {"pair_scope": "", "pair_ttl": ""},
    ],
)
def test_changes(change: dict[str, object]) -> None:
    assert parse_host_change(change) == change


@pytest.mark.parametrize(
    "change",
    [
        {"password": "x"},
        {"public_url": 7},
        {"public_url": "ftp://home.example"},
        {"public_url": "https://user:pw@home.example"},
        {"public_url": "https://home.example\nA=1"},
        {"public_url": "https://home.example/#part"},
        {"public_url": "https://home.example/ x"},
        {"brand": "other"},
        {"pair_scope": "everything"},
        {"pair_ttl": "-1"},
        {"pair_ttl": "30d"},
        {"metrics_token": "short"},
        {"metrics_token": "token 'of' a monitor"},
        {"metrics_token": "x" * 257},
    ],
)
def test_bad_changes(change: dict[str, object]) -> None:
    with pytest.raises(Refused) as caught:
        parse_host_change(change)
    assert caught.value.status == 400
    assert "pw" not in caught.value.message


def book(config: ApiConfig | None = None, **files: str) -> ApiHarness:
    named = {"env": ENV, "yaml": CONFIG}
    made = ApiHarness(config or ApiConfig(key=KEY), files={named[name]: text for name, text in files.items()})
    made.secrets |= {NEW, "sk-of-yaml-3c9d1e"}
    return made


def reload(there: ApiHarness, key: str = KEY) -> tuple[int, object]:
    answer = there.request("POST", "/api/key/reload", key=key)
    return answer.status, answer.json


def ask(there: ApiHarness, key: str) -> int:
    return there.request("GET", "/api/sessions", key=key).status


def stream(there: ApiHarness, key: str = KEY) -> ApiCall:
    session = there.request("POST", "/api/sessions", {}, key=key).json["session"]["id"]
    return there.call("POST", f"/api/sessions/{session}/chat/stream", {"message": "/count 500"}, key=key)


def test_the_old_key_is_refused_at_once() -> None:
    there = book(env=f"API_SERVER_KEY={NEW}\n", yaml=YAML)
    assert (ask(there, KEY), ask(there, NEW)) == (200, 401)  # a new file has no effect before the reload
    assert reload(there) == (200, {"ok": True, "changed": True})
    assert (ask(there, KEY), ask(there, NEW)) == (401, 200)
    assert reload(there)[0] == 401
    assert reload(there, NEW) == (200, {"ok": True, "changed": False})
    assert [(each.event, each.principal) for each in recorded(there)] == [("key rotated", "owner")]
    assert reload(there, NEW) == (200, {"ok": True, "changed": False})
    assert "API key replaced" in [record.event for record in there.logs]
    assert not there.leaks()


def test_old_key_is_logged_apart_from_guesses() -> None:
    there = book(env=f"API_SERVER_KEY={NEW}\n")
    reload(there)
    assert ask(there, KEY) == 401
    there.after(600.0)
    assert ask(there, "sk-of-absent-7a") == 401
    said = [(record.level, record.event) for record in there.logs if record.event.endswith(("key refused", "API key"))]
    assert said == [(Level.INFO, "replaced API key refused"), (Level.WARNING, "wrong API key")]


def test_key_from_the_configuration_file() -> None:
    there = book(env="A=1\n", yaml=YAML)
    assert reload(there) == (200, {"ok": True, "changed": True})
    assert ask(there, "sk-of-yaml-3c9d1e") == 200


def test_requests_of_the_old_key_end() -> None:
    there = book(env=f"API_SERVER_KEY={NEW}\n")
    streamed = stream(there)
    waiting = there.call("POST", f"/api/sessions/{there.session()}/chat", {"message": "/count 500"}, key=KEY)
    there.after(1.5)
    assert len(streamed.named_events()) > 2
    assert reload(there)[0] == 200
    assert streamed.gone
    assert [event for event, _ in streamed.named_events()][-1] != "done"
    assert waiting.result.status == 401
    there.after(2.0)
    assert there.api.runs.outcomes["cancelled"] == 2  # the agent stops, too
    after = stream(there, NEW)
    there.after(120.0)
    assert [event for event, _ in after.named_events()][-1] == "done"


def test_slow_request_of_the_old_key_is_refused() -> None:
    there = book(env=f"API_SERVER_KEY={NEW}\n")
    head = f"POST /api/sessions HTTP/1.1\r\nhost: 127.0.0.1\r\nauthorization: Bearer {KEY}\r\n"
    call = there.raw(f"{head}content-length: 2\r\n\r\n{{".encode())
    reload(there)
    call.say_bytes(b"}")
    assert call.result.status == 401


def test_pairing_key_stays_valid_and_cannot_reload() -> None:
    keys = PairingApiKeys()
    there = ApiHarness(files={ENV: f"API_SERVER_KEY={NEW}\n"}, keys=keys)
    device, key_hash = keys.new_key(counting_entropy())
    keys.codes.register("Q7M2ZK", there.now, PairingMeta(key_hash=key_hash))
    assert (ask(there, device), reload(there, device)[0]) == (200, 401)
    streamed = stream(there, device)
    mine = stream(there)
    there.after(1.5)
    assert reload(there)[0] == 200
    assert (streamed.gone, mine.gone) == (False, True)
    assert keys.replaced == 1  # read by the relay on the same host
    there.after(200.0)
    assert [event for event, _ in streamed.named_events()][-1] == "done"
    assert there.engine.next_deadline() is None  # no timer while there is nothing to end


@pytest.mark.parametrize(
    ("config", "files", "code"),
    [
        (ApiConfig(key=KEY, key_in_environment=True), {"env": f"API_SERVER_KEY={NEW}"}, "key_in_environment"),
        (ApiConfig(), {"env": f"API_SERVER_KEY={NEW}"}, "keyless"),
        (ApiConfig(key=KEY), {}, "key_not_found"),
        (ApiConfig(key=KEY), {"env": "API_SERVER_KEY=", "yaml": "model: m\n"}, "key_not_found"),
        (ApiConfig(key=KEY), {"env": f"API_SERVER_KEY={NEW}", "yaml": "a: ["}, "key_not_read"),
        (ApiConfig(key=KEY), {"env": f"API_SERVER_KEY='{NEW}"}, "key_not_read"),
        (ApiConfig(key=KEY), {"env": "API_SERVER_KEY='a b'"}, "key_not_usable"),
        (ApiConfig(key=KEY, host="0.0.0.0"), {"env": "API_SERVER_KEY=short"}, "key_not_usable"),
    ],
)
def test_when_the_old_key_stays(config: ApiConfig, files: dict[str, str], code: str) -> None:
    there = book(config, **files)
    status, found = reload(there, config.key)
    assert (status, found["error"]["code"]) == (409, code)  # type: ignore[index]
    assert ask(there, config.key) == 200
    assert ask(there, NEW) == (200 if not config.key else 401)


def test_unreadable_env_file() -> None:
    there = book(yaml=YAML)
    there.disk.put(f"{ENV}/not-a-file", b"")
    status, found = reload(there)
    assert (status, found["error"]["code"]) == (409, "key_not_read")  # type: ignore[index]
    assert ask(there, KEY) == 200
