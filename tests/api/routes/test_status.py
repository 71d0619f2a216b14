"""Health, models, capabilities (wire api 1, 5.1, 5.2)."""

import pytest

from svc_proto.api.chat.store_requests import ListChats
from svc_proto.api.config import ApiConfig
from svc_proto.api.routes.status import ENDPOINTS, FEATURES
from svc_proto.api.service import ApiRouter
from svc_proto.basics.brand import HERMES
from svc_proto.commands import OpenFile
from svc_proto.version import VERSION
from tests.api.gateway_client import open_gateway
from tests.api.harness import CONFIG, KEY, START, ApiHarness

NEEDED_BY_PHONES = (  # features that the newest phone reads (wire api 5.2)
    *("session_resources", "session_chat_streaming", "run_events_sse", "chat_completions", "session_fork"),
    *("chat_completions_streaming", "responses_api", "run_approval", "skills_api", "toolsets_api"),
)


@pytest.mark.parametrize("path", ["/health", "/v1/health"])
def test_health(path: str) -> None:
    answer = ApiHarness().request("GET", path, key="")
    assert answer.json == {"status": "ok", "platform": "svc-agent", "version": VERSION}
    assert answer.headers.get(b"content-type") == b"application/json"
    assert ApiHarness(ApiConfig(brand=HERMES)).request("GET", path).json["platform"] == "hermes-agent"


def test_the_configured_version_is_shown_everywhere() -> None:
    version = f"{VERSION}+g2009ac61abcd"
    book = ApiHarness(ApiConfig(key=KEY, version=version))
    assert book.request("GET", "/health").json["version"] == version
    assert f'svc_build{{version="{version}"}} 1.0' in book.request("GET", "/metrics").body.decode()
    assert book.request("GET", "/openapi.json").json["info"]["version"] == version
    phone = open_gateway(book)
    assert phone.last("gateway.ready")["version"] == version
    assert phone.call("session.create")["info"]["version"] == version


def test_health_in_detail() -> None:
    book = ApiHarness(files={CONFIG: "model: {base_url: 'http://127.0.0.1:1/v1', api_key: sesame}\n"})
    book.secrets.add("sesame")
    assert book.request("GET", "/health/detailed", key="").status == 401
    book.session()
    book.after(90.5)
    body = book.request("GET", "/health/detailed").json
    assert (body["status"], body["version"]) == ("ok", VERSION)
    assert body["readiness"] == {
        "status": "ok",
        "checks": {
            "state_db": {"status": "ok", "sessions": 1},
            "model": {"status": "ok", "detail": "configured"},
            "background_queues": {"status": "ok", "active_runs": 0},
        },
    }
    assert (body["gateway_state"], body["active_agents"], body["gateway_busy"]) == ("running", 0, False)
    assert (body["updated_at"], body["uptime_seconds"]) == ("2027-01-15T08:01:30Z", 90)
    assert not book.leaks()


def test_failing_store_is_degraded() -> None:
    book = ApiHarness()
    book.refuse = (ListChats,)
    body = book.request("GET", "/health/detailed").json
    assert (body["status"], body["readiness"]["checks"]["state_db"]) == ("degraded", {"status": "degraded"})
    assert body["readiness"]["checks"]["model"]["detail"] == "built-in"


def test_draining_during_the_stop() -> None:
    book = ApiHarness()
    book.hold = (OpenFile,)
    call = book.call("GET", "/health/detailed")
    book.stop()
    book.hold = ()
    book.release()
    assert call.result.json["gateway_state"] == "draining"


def test_models() -> None:
    extra = "{model_name: jarvis, model_routes: {fast: {model: tiny, api_key: sesame}}}"
    model = "model: {base_url: 'http://127.0.0.1:1/v1', default: big}"
    book = ApiHarness(files={CONFIG: f"platforms: {{api_server: {{extra: {extra}}}}}\n{model}\n"})
    book.secrets.add("sesame")
    answer = book.request("GET", "/v1/models")
    row = {"object": "model", "created": int(START.wall), "owned_by": "svc", "permission": []}
    jarvis = {"id": "jarvis", **row, "root": "jarvis", "parent": None}
    fast = {"id": "fast", **row, "root": "tiny", "parent": "jarvis"}
    assert answer.json == {"object": "list", "data": [jarvis, fast]}
    for found in answer.json["data"]:
        assert book.request("GET", f"/v1/models/{found['id']}").json == found
    answer = book.request("GET", f"/v1/models/meta%2Fllama{'x' * 100}")
    assert answer.status == 404
    assert answer.json["error"]["message"] == f"the model 'meta/llama{'x' * 70}' does not exist"
    assert (answer.json["error"]["param"], answer.json["error"]["code"]) == ("model", "model_not_found")
    assert not book.leaks()


def test_capabilities() -> None:
    book = ApiHarness()
    body = book.request("GET", "/v1/capabilities").json
    assert (body["object"], body["platform"], body["model"]) == ("svc.capabilities", "svc-agent", "svc-agent")
    assert body["auth"] == {"type": "bearer", "required": True}
    features, endpoints = body["features"], body["endpoints"]
    assert features["session_id_header"] == "X-Svc-Session-Id"
    assert features["session_continuity_header"] == features["session_id_header"]
    assert "model_options" not in features
    assert "session_model_lock" not in features
    assert endpoints.keys() == ENDPOINTS.keys()  # a path or method without a route is left out
    assert [name for name in FEATURES if features.get(name) is not True] == []
    assert {*NEEDED_BY_PHONES} <= FEATURES.keys()
    assert endpoints["session_chat_stream"] == {"method": "POST", "path": "/api/sessions/{id}/chat/stream"}
    assert ApiHarness(ApiConfig()).request("GET", "/v1/capabilities").json["auth"]["required"] is False


def test_capabilities_omit_missing_routes() -> None:
    book = ApiHarness()
    book.api.router = ApiRouter(route for route in book.api.router.routes if "/v1/runs" not in route.pattern)
    body = book.request("GET", "/v1/capabilities").json
    assert "runs" not in body["endpoints"]
    assert "run_events_sse" not in body["features"]


def test_the_other_brand() -> None:
    book = ApiHarness(ApiConfig(key=KEY, brand=HERMES))
    session = book.request("POST", "/api/sessions", {}).json
    assert (session["object"], session["model"]) == ("hermes.session", "hermes-agent")
    body = book.request("GET", "/v1/capabilities").json
    assert body["features"]["session_key_header"] == "X-Hermes-Session-Key"
    assert body["features"]["tool_progress_header"] == "X-Hermes-Tool-Progress"
