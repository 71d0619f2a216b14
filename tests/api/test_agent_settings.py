from typing import Any

import pytest

from svc_proto.agent.interface import ModelEndpoint
from svc_proto.api import agent_settings
from svc_proto.api.config import ApiConfig
from svc_proto.basics.brand import HERMES, SVC
from svc_proto.commands import Level
from tests.api.harness import CONFIG, ApiHarness
from tests.support.http_harness import Reply, UpstreamRequest, as_json

OLLAMA = "http://127.0.0.1:11434/v1"
CLOUD = "https://api.example/v1"


def settings(found: dict[str, object] | None = None, **config: Any) -> agent_settings.AgentSettings:
    return agent_settings.build_agent_settings(ApiConfig(**config), found or {})


def routed(alias: object, **main: object) -> dict[str, object]:
    return {"model": main, "platforms": {"api_server": {"extra": {"model_routes": {"fast": alias}}}}}


def test_nothing_is_configured() -> None:
    found = settings()
    assert found.endpoint is None
    assert found.name == "svc-agent"
    assert found.personalities == {}
    assert (found.personality, found.max_tokens, found.system) == (None, None, "")
    assert found.shown == {"agent": {"personalities": {}}, "display": {}, "model": {}}


def test_names() -> None:
    assert agent_settings.product_id(SVC) == "svc-agent"
    assert settings(brand=HERMES).name == "hermes-agent"
    named: dict[str, object] = {"platforms": {"api_server": {"extra": {"model_name": "jarvis"}}}}
    assert settings(named).name == "jarvis"
    assert settings(named, model_name="hal").name == "hal"


@pytest.mark.parametrize(
    ("model", "config", "route"),
    [
        ({"default": "gpt"}, {}, None),
        ("gpt", {}, None),
        ({"base_url": OLLAMA}, {}, (OLLAMA, "default", "")),
        ({"base_url": OLLAMA + "/", "default": "m", "api_key": "k"}, {}, (OLLAMA, "m", "k")),
        ({"base_url": OLLAMA, "default": "m"}, {"model": "other"}, (OLLAMA, "other", "")),
        ({"base_url": OLLAMA}, {"model_api_key": "env"}, (OLLAMA, "default", "env")),
        ({"base_url": OLLAMA, "api_key": "k"}, {"model_api_key": "env"}, (OLLAMA, "default", "k")),
        ("m", {"model_base_url": CLOUD, "model_api_key": "env"}, (CLOUD, "m", "env")),
        ({"base_url": OLLAMA, "api_key": "k"}, {"model_base_url": CLOUD}, (CLOUD, "default", "")),
        ({"base_url": "https://API.example/x", "api_key": "k"}, {"model_base_url": CLOUD}, (CLOUD, "default", "k")),
        ({"api_key": "k"}, {"model_base_url": CLOUD}, (CLOUD, "default", "")),
        ({"base_url": "ftp://x"}, {}, None),
        ({"base_url": "http://u:p@x/v1"}, {}, None),
        ({"base_url": 7}, {}, None),
        ([1], {}, None),
    ],
)
def test_routes(model: object, config: dict[str, str], route: tuple[str, str, str] | None) -> None:
    expected = None if route is None else ModelEndpoint(base_url=route[0], model=route[1], api_key=route[2])
    assert settings({"model": model}, **config).endpoint == expected


@pytest.mark.parametrize(
    ("url", "good"), [(OLLAMA, True), (OLLAMA + "?a=1", False), (OLLAMA + "#x", False), ("", False), ("x", False)]
)
def test_endpoints(url: str, good: bool) -> None:
    assert agent_settings.is_usable_base_url(url) is good


@pytest.mark.parametrize(
    ("alias", "route"),
    [
        ({"model": "a"}, (OLLAMA, "a", "main")),
        ({"model": "a", "api_key": "own"}, (OLLAMA, "a", "own")),
        ({"model": "a", "base_url": OLLAMA}, (OLLAMA, "a", "main")),
        ({"model": "a", "base_url": CLOUD}, (CLOUD, "a", "")),
        ({"model": "a", "base_url": CLOUD, "api_key": "own"}, (CLOUD, "a", "own")),
    ],
)
def test_aliases(alias: dict[str, str], route: tuple[str, str, str]) -> None:
    found = settings(routed(alias, base_url=OLLAMA, api_key="main"))
    assert found.aliases == {"fast": ModelEndpoint(base_url=route[0], model=route[1], api_key=route[2])}


def test_the_setting_that_names_an_address() -> None:
    file, variable = "model.base_url in config.yaml", "SVC_MODEL_BASE_URL in .env"
    named = settings(routed({"model": "a"}, base_url=OLLAMA))
    assert named.endpoint is not None
    assert (named.endpoint.source, named.aliases["fast"].source) == (file, file)
    config = {"model_base_url": CLOUD, "model_base_url_source": variable}
    named = settings(routed({"model": "a", "base_url": OLLAMA}, base_url=OLLAMA), **config)
    assert named.endpoint is not None
    assert (named.endpoint.source, named.aliases["fast"].source) == (variable, "model_routes in config.yaml")


def test_the_context_of_a_model() -> None:
    found = settings(routed({"model": "a", "context_length": 2_048}, base_url=OLLAMA, context_length=8_192))
    assert found.endpoint is not None
    assert (found.endpoint.context, found.aliases["fast"].context) == (8_192, 2_048)
    found = settings(routed({"model": "a", "context_length": "big"}, base_url=OLLAMA), model_context=4_096)
    assert found.endpoint is not None
    assert (found.endpoint.context, found.aliases["fast"].context) == (4_096, None)


@pytest.mark.parametrize("alias", [{}, {"model": 1}, {"model": "a", "base_url": "nonsense"}, "a", None])
def test_invalid_aliases_are_omitted(alias: object) -> None:
    assert settings(routed(alias, base_url=OLLAMA)).aliases == {}
    assert settings(routed({"model": "a"})).aliases == {}  # without an endpoint from anywhere


@pytest.mark.parametrize(
    ("given", "tokens"),
    [(512, 512), (1, 1), (10**7, 10**7), *((given, None) for given in (10**7 + 1, 0, True, "512", 1.5))],
)
def test_max_tokens(given: object, tokens: int | None) -> None:
    assert settings({"model": {"max_tokens": given}}).max_tokens == tokens
    assert settings({"model": {"max_tokens": given}}, max_tokens=9).max_tokens == 9


@pytest.mark.parametrize(
    ("found", "config", "sends"),
    [
        ({}, {}, False),
        ({"model": {"api_key": "k"}}, {}, True),
        ({}, {"model_api_key": "k"}, True),
        ({}, {"model_api_key": "k", "model_base_url": CLOUD}, False),
        (routed({"model": "a", "api_key": "k"}), {}, True),
        (routed({"model": "a", "api_key": "k", "base_url": CLOUD}), {}, False),
    ],
)
def test_keys_sent_to_the_main_host(found: dict[str, object], config: dict[str, Any], sends: bool) -> None:
    assert agent_settings.sends_key_to_main_host(ApiConfig(**config), found) is sends


PEOPLE: dict[str, object] = {
    "agent": {
        "system_prompt": " You help. ",
        "personalities": {
            "brief": "Answer in one line. ",
            "mentor": {"system_prompt": "Explain patiently.", "tone": "warm", "style": "steps", "token": "x"},
            "odd": {"tone": "warm"},
            "blank": " ",
            "none": "never",
            "list": ["x"],
        },
    },
    "display": {"personality": "brief", "skin": "default", "width": 3, "api_key": "x"},
}


def test_personalities() -> None:
    found = settings(PEOPLE)
    assert found.system == "You help."
    assert found.personality == "brief"
    assert found.personalities["brief"] == "Answer in one line."
    assert found.personalities["mentor"] == "Explain patiently.\ntone: warm\nstyle: steps"
    assert list(found.personalities) == ["brief", "mentor", "odd", "none"]
    assert found.shown["agent"] == {
        "personalities": {
            "brief": "Answer in one line. ",
            "mentor": {"system_prompt": "Explain patiently.", "tone": "warm", "style": "steps"},
            "odd": {"tone": "warm"},
            "none": "never",
        }
    }
    assert found.shown["display"] == {"personality": "brief", "skin": "default"}


@pytest.mark.parametrize(
    ("named", "prompt"),
    [
        *((name, "Explain patiently.\ntone: warm\nstyle: steps") for name in ("mentor", " mentor ")),
        *((name, "Answer in one line.") for name in ("unknown", "default", "none", "", None, 7)),
    ],
)
def test_the_prompt_of_a_turn(named: object, prompt: str) -> None:
    assert settings(PEOPLE).prompt_for(named) == prompt


@pytest.mark.parametrize("default", ["default", "Default", "none", "", " ", "gone"])
def test_no_personality(default: str) -> None:
    assert settings({"display": {"personality": default}}).prompt_for("x") == ""


def test_no_secret_is_shown() -> None:
    model = {"default": "m", "base_url": "http://u:sesame@h", "api_key": "sesame", "extra": "sesame", "max_tokens": 5}
    found = settings({"model": model}, model_api_key="sesame")
    assert found.shown["model"] == {"default": "m", "base_url": "", "max_tokens": 5}
    assert "sesame" not in str(found)


def test_the_file_is_read_anew_each_time() -> None:
    book = ApiHarness()
    assert book.spawn(book.api.settings())[0].model == ""
    book.disk.put(CONFIG, b"model: first\n")
    assert book.spawn(book.api.settings())[0].model == "first"
    book.disk.put(CONFIG, b"model: {default: second}\n")
    assert book.spawn(book.api.settings())[0].model == "second"
    assert book.events(Level.WARNING) == []
    book.disk.put(CONFIG, b"model: [")
    assert book.spawn(book.api.settings())[0].model == ""
    assert book.events(Level.WARNING) == ["configuration not read"]


def test_an_address_without_a_name_asks_the_server() -> None:
    book = ApiHarness(files={CONFIG: f"model: {{base_url: '{OLLAMA}'}}\n"})
    names: list[str] = []
    asked: list[str] = []

    def listed(request: UpstreamRequest) -> Reply:
        asked.append(request.url)
        return as_json({"data": [{"id": name} for name in names]})

    def name() -> str:
        endpoint = book.spawn(book.api.settings())[0].endpoint
        assert endpoint is not None
        return endpoint.model

    book.http = listed
    assert (name(), name()) == ("default", "default")
    assert asked == [f"{OLLAMA}/models"]  # the next request follows after a pause
    names[:] = ["first", "second"]
    book.clock.now += 30.0
    assert (name(), name(), len(asked)) == ("first", "first", 2)
    book.disk.put(CONFIG, f"model: {{base_url: '{OLLAMA}', name: own}}\n".encode())
    assert name() == "own"


def test_a_model_that_is_named_default() -> None:
    book = ApiHarness(files={CONFIG: f"model: {{base_url: '{OLLAMA}'}}\n"})
    book.http = lambda request: as_json({"data": [{"id": "a"}, {"id": "default"}]})
    for _ in range(2):
        endpoint = book.spawn(book.api.settings())[0].endpoint
        assert endpoint is not None
        assert endpoint.model == "default"


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("model: 5", "model is neither a name nor an object"),
        ("model: {default: 7}", "model.default is no text"),
        ("model: {default: a, base_url: 'ftp://u:secret@h'}", "model.base_url is no address of an endpoint"),
        ("model:", None),
        ("model: {default: a, base_url: ''}", None),
    ],
)
def test_invalid_model_setting_is_logged(text: str, problem: str | None) -> None:
    book = ApiHarness(files={CONFIG: text})
    assert book.spawn(book.api.settings())[0].model in ("", "a")
    told = [record.fields for record in book.logs if record.event == "configuration not used"]
    assert told == ([] if problem is None else [{"path": CONFIG, "problem": problem}])


@pytest.mark.parametrize(
    ("names", "meant"),
    [
        ("modle", {"modle": "model"}),
        ("Model", {"Model": "model"}),
        ("models", {"models": "model"}),
        ("models model", {}),  # the unknown key belongs to another program
        ("gatway voice-output", {"gatway": "gateway", "voice-output": "voice_output"}),
        ("mcp_server", {"mcp_server": "mcp_servers"}),
        (" ".join(agent_settings.FILE_MEMBERS), {}),
        # Sections of the same file that belong to other agents in use.
        ("approvals auxiliary browser checkpoints command_allowlist compression cron custom_providers dashboard", {}),
        ("delegation discord file_read_max_chars group_sessions_per_user honcho human_delay kanban logging", {}),
        ("memory network onboarding personalities prefill_messages_file privacy provider_routing providers", {}),
        ("quick_commands security session_reset sessions skills slack smart_model_routing streaming telegram", {}),
        ("terminal timezone tool_output toolsets updates voice web whatsapp x" + 40 * "model", {}),
    ],
)
def test_misspelled_settings_are_found(names: str, meant: dict[str, str]) -> None:
    assert agent_settings.find_misspelled(dict.fromkeys(names.split(), 1)) == meant
