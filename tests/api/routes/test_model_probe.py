"""The probe of a model's server: its models, a test of one, and to which server the key is sent."""

from __future__ import annotations

import json
from typing import Any

import pytest

from svc_proto.api.config import ApiConfig
from svc_proto.schema.model_profile import PROFILES_FILE
from tests.api.harness import HOME, KEY, START, ApiHarness
from tests.support.http_harness import as_json

OURS = "http://127.0.0.1:9000/v1"
LISTED = as_json({"data": [{"id": "small", "max_model_len": 8192}, {"id": "large"}]})
CALLED = as_json({"choices": [{"message": {"tool_calls": [{"id": "1"}]}}]})
SILENT = as_json({"choices": [{"message": {"content": "ready"}}]})


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
    assert found["seconds"] >= 0


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


def test_a_server_that_refuses_the_list() -> None:
    found = probe(beside(models=(401, b"{}")), base_url=OURS)
    assert (found["models"], found["problem"]) == ([], "it answered 401")


def test_a_server_that_cannot_be_reached() -> None:
    book = ApiHarness()
    found = probe(book, base_url=OURS, model="small")
    assert found["models"] == []
    assert found["problem"]
    assert "seconds" not in found


@pytest.mark.parametrize("url", ["", "ftp://a/v1", "http://me:pass@a/v1"])
def test_an_address_that_cannot_be_used(url: str) -> None:
    assert ApiHarness().request("POST", "/api/model/probe", {"base_url": url}).status == 400
