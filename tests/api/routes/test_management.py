"""Configuration, memory, skills, toolsets, models (wire api 8)."""

import json
from typing import Any

import pytest

from svc_proto.api.config import ApiConfig
from svc_proto.commands import ReadConfig, WriteConfig
from svc_proto.schema.model_profile import PROFILES_FILE
from tests.api.harness import CONFIG, HOME, KEY, START, ApiHarness
from tests.support.http_harness import as_json

FILE = """
agent:
  personalities:
    brief: Answer in one line.
display: {personality: brief, skin: default}
model: {default: gpt-4o-mini, provider: custom, base_url: 'http://127.0.0.1:9000/v1', api_key: sesame}
secrets: {token: sesame}
"""
OURS = "http://127.0.0.1:9000/v1"
LISTED = as_json({"data": [{"id": "small", "max_model_len": 8192}, {"id": "large"}]})
CALLED = as_json({"choices": [{"message": {"tool_calls": [{"id": "1"}]}}]})
SILENT = as_json({"choices": [{"message": {"content": "ready"}}]})


@pytest.fixture
def book() -> ApiHarness:
    book = ApiHarness(files={CONFIG: FILE})
    book.secrets.add("sesame")
    return book


def test_the_configuration(book: ApiHarness) -> None:
    assert book.request("GET", "/api/config").json == {
        "model": "gpt-4o-mini",
        "provider": "custom",
        "api_mode": "",
        "base_url": "http://127.0.0.1:9000/v1",
        "config": {
            "agent": {"personalities": {"brief": "Answer in one line."}},
            "display": {"personality": "brief", "skin": "default"},
            "model": {"default": "gpt-4o-mini", "provider": "custom", "base_url": "http://127.0.0.1:9000/v1"},
        },
    }
    assert not book.leaks()


def test_the_models_of_the_upstream(book: ApiHarness) -> None:
    book.http = lambda asked: as_json({"data": [{"id": "gpt-4o-mini"}, {"id": "gpt-4o"}]})
    body = book.request("GET", "/api/available-models").json
    assert body == {
        "provider": "custom",
        "models": [{"id": "gpt-4o-mini", "description": ""}, {"id": "gpt-4o", "description": ""}],
        "providers": [{"id": "custom", "label": "Custom", "aliases": [], "authenticated": True}],
    }
    assert book.request("GET", "/api/available-models?provider=custom").json == body
    other = book.request("GET", "/api/available-models?provider=other").json
    assert (other["provider"], other["models"], other["providers"]) == ("other", [], body["providers"])
    assert not book.leaks()


@pytest.mark.parametrize(
    ("model", "provider", "label", "authenticated"),
    [
        ("{}", "builtin", "Builtin", True),
        ("{base_url: 'http://127.0.0.1:9/v1'}", "custom", "Custom", False),
        ("{base_url: 'http://127.0.0.1:9/v1', provider: open_router}", "open_router", "Open Router", False),
        ("{base_url: 'http://127.0.0.1:9/v1', provider: my-own}", "my-own", "My Own", False),
    ],
)
def test_providers(model: str, provider: str, label: str, authenticated: bool) -> None:
    body = ApiHarness(files={CONFIG: f"model: {model}\n"}).request("GET", "/api/available-models?provider=").json
    assert body["provider"] == provider
    assert (body["providers"][0]["label"], body["providers"][0]["authenticated"]) == (label, authenticated)
    assert len(body["models"]) == 1


def test_memory_from_the_first_note_to_the_last(book: ApiHarness) -> None:
    def send(method: str, **body: str) -> tuple[int, Any]:
        answer = book.request(method, "/api/memory", {"target": "user", **body})
        return answer.status, answer.json

    assert send("POST", content="likes tea")[0] == 200
    assert send("PATCH", old_text="tea", content="likes coffee")[0] == 200
    listed = book.request("GET", "/api/memory?target=user").json
    row = {"target": "user", "entries": ["likes coffee"], "entry_count": 1, "usage": "0% - 12/1,375 chars"}
    assert listed == {**row, "targets": [row]}
    both = book.request("GET", "/api/memory").json
    assert [each["target"] for each in both["targets"]] == ["memory", "user"]
    assert "entries" not in both
    assert book.request("GET", "/api/memory?target=x").status == 400
    status, body = send("DELETE", old_text="tea")
    assert (status, body["success"]) == (400, False)
    assert body["current_entries"] == ["likes coffee"]
    assert send("DELETE", old_text="coffee")[0] == 200
    assert book.request("GET", "/api/memory?target=all").json["targets"][1]["entries"] == []


@pytest.mark.parametrize(
    ("method", "body"),
    [
        ("POST", {"target": "all", "content": "x"}),
        ("POST", {"target": "memory", "content": ["x"]}),
        ("PATCH", {"target": "memory", "old_text": "x"}),
        ("DELETE", {"target": "memory"}),
        ("DELETE", None),
    ],
)
def test_bad_notes(book: ApiHarness, method: str, body: object) -> None:
    answer = book.request(method, "/api/memory", body)
    assert answer.status == 400
    assert list(answer.json) == ["error"]
    assert isinstance(answer.json["error"], str)
    assert not [command for command in book.commands if isinstance(command, WriteConfig)]


@pytest.mark.parametrize(("method", "kind"), [("GET", ReadConfig), ("POST", ReadConfig), ("POST", WriteConfig)])
def test_failing_disk_gives_503(book: ApiHarness, method: str, kind: type) -> None:
    book.refuse = (kind,)
    body = {"target": "memory", "content": "x"} if method == "POST" else None
    answer = book.request(method, "/api/memory", body)
    assert answer.status == 503
    assert isinstance(answer.json["error"], str)


def test_skills(book: ApiHarness) -> None:
    book.disk.put(f"{HOME}/skills/notes/SKILL.md", b"---\nname: notes\ndescription: Keeps notes\n---\nWrite.\n")
    book.disk.put(f"{HOME}/skills/phone/battery/SKILL.md", b"---\nname: battery\ndescription: Watts\n---\nLook.\n")
    book.disk.put(f"{HOME}/skills/phone/toggle/SKILL.md", b"---\nname: toggle\ndescription: Flips\n---\nFlip.\n")
    body = book.request("GET", "/api/skills").json
    rows = [
        {"name": "notes", "description": "Keeps notes", "category": None},
        {"name": "battery", "description": "Watts", "category": "phone"},
        {"name": "toggle", "description": "Flips", "category": "phone"},
    ]
    assert (body["skills"], body["success"], body["categories"], body["count"]) == (rows, True, ["phone"], 3)
    assert book.request("GET", "/v1/skills").json == {"object": "list", "data": rows}
    some = book.request("GET", "/api/skills?category=phone").json
    assert (some["skills"], some["categories"], some["count"]) == (rows[1:], ["phone"], 2)
    assert book.request("GET", "/api/skills/notes").json["content"].endswith("Write.\n")
    assert book.request("GET", "/api/skills/toggle").json["name"] == "toggle"
    assert book.request("GET", "/api/skills/notes?file_path=SKILL.md").json["file"] == "SKILL.md"
    unknown = book.request("GET", "/api/skills/nothing")
    assert (unknown.status, unknown.json["success"]) == (200, False)


def test_skills_are_not_switched(book: ApiHarness) -> None:
    answer = book.request("PUT", "/api/skills/toggle", {"skill": "x", "enabled": False})
    assert answer.status == 501
    assert answer.json["error"] == "skill_toggle_not_implemented"
    assert answer.json["detail"]


def test_toolsets(book: ApiHarness) -> None:
    body = book.request("GET", "/v1/toolsets").json
    assert (body["object"], body["platform"]) == ("list", "api_server")
    for row in body["data"]:
        assert set(row) == {"name", "label", "description", "enabled", "configured", "tools", "descriptions"}
        assert None not in row.values()


def beside(chat: tuple[int, bytes] = CALLED, models: tuple[int, bytes] = LISTED, **config: Any) -> ApiHarness:
    """Return an API harness whose model server gives scripted answers to chats and to the list of models."""
    book = ApiHarness(ApiConfig(key=KEY, **config))
    answers = {"/v1/models": models, "/v1/chat/completions": chat}
    book.http = lambda asked: answers.get(asked.path, (404, b""))
    return book


def probe(book: ApiHarness, **body: Any) -> dict[str, Any]:
    answer = book.request("POST", "/api/model/probe", body)
    assert answer.status == 200
    found: dict[str, Any] = answer.json
    return found


def test_models_of_another_server() -> None:
    book = beside()
    assert probe(book, base_url=f"{OURS}/") == {"base_url": OURS, "models": ["small", "large"], "problem": None}
    assert {asked.path for asked in book.asked} == {"/v1/models"}


@pytest.mark.parametrize(
    ("chat", "tools", "problem"),
    [
        (CALLED, True, None),
        (SILENT, None, None),
        (as_json({"error": {"message": "this model has no tools"}}, 400), False, None),
        (as_json({"error": {"message": "out of memory"}}, 500), None, "status 500: out of memory"),
    ],
)
def test_one_model(chat: tuple[int, bytes], tools: bool | None, problem: str | None) -> None:
    found = probe(beside(chat), base_url=OURS, model="small")
    assert (found["model"], found["context"], found["problem"]) == ("small", 8192, problem)
    assert found["tools"] is tools


def test_a_model_that_calls_tools_is_learned_anew() -> None:
    row = {"base_url": OURS, "model": "small", "learned_at": START.wall, "tools": False}
    book = beside(model_base_url=OURS, model="small")
    book.disk.put(f"{HOME}/{PROFILES_FILE}", json.dumps({"profiles": [row]}).encode())
    book.request("POST", "/v1/chat/completions", {"messages": [{"role": "user", "content": "Hi"}]})
    assert "tools" not in json.loads(book.asked[-1].body)
    probe(book, model="small")
    book.request("POST", "/v1/chat/completions", {"messages": [{"role": "user", "content": "Hi"}]})
    assert "tools" in json.loads(book.asked[-1].body)


def test_the_key_is_sent_to_its_own_server_only() -> None:
    book = beside(model_base_url=OURS, model="small", model_api_key="sesame")
    assert probe(book)["base_url"] == OURS
    assert probe(book, base_url="http://127.0.0.2:9000/v1")["models"] == ["small", "large"]
    assert [asked.headers.get(b"authorization") for asked in book.asked] == [b"Bearer sesame", None]


def test_a_server_that_refuses_the_list_or_cannot_be_reached() -> None:
    found = probe(beside(models=(401, b"{}")), base_url=OURS)
    assert (found["models"], found["problem"]) == ([], "it answered 401")
    found = probe(ApiHarness(), base_url=OURS, model="small")  # a server that cannot be reached
    assert found["models"] == []
    assert found["problem"]
    assert "seconds" not in found


@pytest.mark.parametrize("url", ["", "ftp://a/v1", "http://me:pass@a/v1"])
def test_an_address_that_cannot_be_used(url: str) -> None:
    assert ApiHarness().request("POST", "/api/model/probe", {"base_url": url}).status == 400
