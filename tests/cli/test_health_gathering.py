import json
from typing import Any

import pytest
from attrs import evolve

from svc_proto.cli.health_facts import HostFacts, ModelFacts, RouteFacts, ServerFacts
from svc_proto.cli.health_gathering import HealthRequest, gather_facts
from svc_proto.cli.pairing_candidates import public_candidate
from svc_proto.facts import Failure, FailureKind
from svc_proto.relay_config import RelayConfig
from svc_proto.schema.model_profile import PROFILES_FILE
from tests.cli.harness import REFUSED, OneShotHarness, Reply, UpstreamRequest, as_json
from tests.support.core_harness import HOME

CONFIG = RelayConfig(home="/h", config_path="/h/config.yaml", api_key="k3y")
REQUEST = HealthRequest(config=CONFIG, version="1.0.0", ports=(("relay", 8767), ("api", 8642), ("dashboard", 9119)))


def row(role: str, port: int, **more: Any) -> dict[str, Any]:
    where = {"host": "0.0.0.0", "port": port, "inside": f"http://127.0.0.1:{port}"}
    return {"role": role, "version": "1.0.0", "brand": "svc", "key": "/h/.env", **where, **more}


REPORT: dict[str, Any] = {
    "servers": [row("relay", 8767), row("api", 8642)],
    "home": "/h",
    "disk_free": 5,
    "model": {"base_url": "http://model.lan/v1", "name": "m", "key": "", "context": 4096, "source": "config.yaml"},
    "settings": {"SVC_DASHBOARD_PASSWORD": "word"},
    "certificates": [{"role": "relay", "path": "/c", "days_left": 3.0, "names": ["h"]}],
    "is_container": False,
}
SESSIONS = [
    {"token_prefix": "aaaa", "device_name": "Pixel", "online": True, "client_surface": "android", "last_seen": 5},
    {"token_prefix": "bbbb", "client_surface": "desktop", "expires_at": 9},
]


def answering(**replaced: Reply) -> Any:
    def answer(asked: UpstreamRequest) -> Reply:
        name = asked.path.strip("/").replace("/", "_")
        if name in replaced:
            return replaced[name]
        known: dict[str, object] = {
            "/health": {"status": "ok", "version": "1.0.0"},
            "/v1/models": {"data": [{"id": "m"}]},
            "/sessions": {"sessions": SESSIONS},
            "/bridge/devices": {"devices": [{"session_token_prefix": "aaaa", "bridge": {"master_enabled": True}}]},
            "/v1/chat/completions": {"choices": []},
        }
        if asked.url.startswith("http://127.0.0.1:9119"):
            return REFUSED
        return as_json(known[asked.path]) if asked.path in known else (404, b"")

    return answer


def gathered(
    report: object = REPORT, request: HealthRequest = REQUEST, profiles: str = "", dead: str = "none", **replaced: Reply
) -> HostFacts:
    """Return the facts about this host; the server at the address `dead` refuses connections."""
    answer = answering(**replaced)
    return OneShotHarness(
        lambda engine: gather_facts(engine, request),
        compute={"host.report": lambda home, ports: report},
        http=lambda asked: REFUSED if asked.url.startswith(dead) else answer(asked),
        files={f"{HOME}/{PROFILES_FILE}": profiles} if profiles else {},
    ).run()


def test_everything() -> None:
    facts = gathered()
    assert facts.servers == (
        ServerFacts(role="relay", port=8767, version="1.0.0"),
        ServerFacts(role="api", port=8642, version="1.0.0"),
        ServerFacts(role="dashboard", port=9119, runs=False, answers=False, wanted=False),
    )
    assert facts.routes == (RouteFacts("lan", "ws://192.0.2.10:8767", api_url="http://192.0.2.10:8642"),)
    found = ModelFacts(base_url="http://model.lan/v1", name="m", source="config.yaml", listed=("m",))
    assert facts.model == evolve(found, configured_context=4096)
    assert [(each.name, each.is_phone, each.is_online, each.seen_at) for each in facts.devices or ()] == [
        ("Pixel", True, True, 5),
        ("a device", False, False, None),
    ]
    assert (facts.disk_free, facts.key, facts.dashboard_password) == (5, "k3y", "word")
    assert facts.certificates[0].names == ("h",)


def test_a_host_without_a_report() -> None:
    facts = gathered(Failure(FailureKind.INTERNAL))
    assert facts.devices is None
    assert facts.home == "/h"
    assert [each.taken for each in facts.servers] == [False, False, False]


def test_ports_that_another_program_has() -> None:
    facts = gathered({"busy_ports": [8642]})
    assert [each.taken for each in facts.servers] == [False, True, False]


@pytest.mark.parametrize(
    ("dead", "api_host", "problem"),
    [
        (8767, "0.0.0.0", "ws://192.0.2.10:8767"),
        (8642, "0.0.0.0", "http://192.0.2.10:8642"),
        (8642, "127.0.0.1", ""),  # the API is for this host alone
        (1, "0.0.0.0", ""),
    ],
)
def test_a_route_whose_servers_do_not_answer(dead: int, api_host: str, problem: str) -> None:
    report = {**REPORT, "servers": [row("relay", 8767), row("api", 8642, host=api_host)]}
    (route,) = gathered(report, dead=f"http://192.0.2.10:{dead}").routes
    assert (route.url if route.problem else "", route.problem) == (problem, "connection refused" if problem else "")


def test_servers_that_do_not_answer() -> None:
    facts = gathered(health=REFUSED)
    assert [each.answers for each in facts.servers] == [False, False, False]
    assert facts.routes == ()


@pytest.mark.parametrize(("key", "wanted"), [("", False), ("k3y", True)])
def test_a_relay_by_itself(key: str, wanted: bool) -> None:
    """An API server beside the relay is expected only if its key is configured."""
    facts = gathered({**REPORT, "servers": [row("relay", 8767)], "settings": {"API_SERVER_KEY": key}})
    assert facts.routes == (RouteFacts("lan", "ws://192.0.2.10:8767"),)
    assert [each.wanted for each in facts.servers] == [True, wanted, False]


def test_a_keyless_api() -> None:
    report = {**REPORT, "servers": [row("relay", 8767), row("api", 8642, key="")]}
    assert gathered(report).key == ""


def test_a_relay_that_does_not_list_its_devices() -> None:
    assert gathered(sessions=(403, b"{}")).devices is None


@pytest.mark.parametrize(("models", "problem", "status"), [(REFUSED, "connection refused", 0), ((401, b"{}"), "", 401)])
def test_a_model_that_does_not_answer(models: Reply, problem: str, status: int) -> None:
    model = gathered(v1_models=models).model
    assert (model.problem, model.status, model.has_tools) == (problem, status, None)


def test_a_model_without_tools() -> None:
    refusal = (400, b'{"error": "m does not support tools"}')
    assert gathered(v1_chat_completions=refusal).model.has_tools is False
    assert gathered(request=evolve(REQUEST, tries_model=False), v1_chat_completions=refusal).model.has_tools is None


def test_what_the_agent_has_learned_about_the_model() -> None:
    row = {"base_url": "http://model.lan/v1", "model": "m", "configured_context": 4096, "tools": False}
    assert gathered(profiles=json.dumps({"profiles": [row]})).model.learned == ("takes no tools",)
    other = {**row, "model": "n"}
    assert gathered(profiles=json.dumps({"profiles": [other]})).model.learned == ()


def test_models_without_a_choice() -> None:
    unnamed = {**REPORT, "model": {"base_url": "http://model.lan/v1"}}
    assert gathered(unnamed).model.listed == ("m",)
    two = as_json({"data": [{"id": "a"}, {"id": "b"}]})
    assert gathered(unnamed, v1_models=two).model.name == ""
    assert gathered({**REPORT, "model": {"name": "m"}}).model == ModelFacts(name="m")


def test_a_public_address() -> None:
    request = evolve(REQUEST, public=public_candidate("http://home.example/relay", 8767))
    facts = gathered(request=request)
    assert {each.subject for each in facts.public} >= {"ws://home.example/relay", "encryption"}
    board = {**REPORT, "servers": [row("dashboard", 9119, root_path="/board")]}
    assert gathered(board, request, health=REFUSED).public != ()
