"""Configuration, memory, skills, toolsets, models (wire api 8)."""

from __future__ import annotations

from typing import Any

import pytest

from svc_proto.commands import ReadConfig, WriteConfig
from tests.api.harness import CONFIG, HOME, ApiHarness
from tests.support.http_harness import as_json

FILE = """
agent:
  personalities:
    brief: Answer in one line.
display: {personality: brief, skin: default}
model: {default: gpt-4o-mini, provider: custom, base_url: 'http://127.0.0.1:9000/v1', api_key: sesame}
secrets: {token: sesame}
"""


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


def test_unreachable_upstream_lists_the_configured_model(book: ApiHarness) -> None:
    body = book.request("GET", "/api/available-models").json
    assert body["models"] == [{"id": "gpt-4o-mini", "description": ""}]


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
