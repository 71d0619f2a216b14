"""Tests of `svc model` with a scripted model server on loopback."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from svc_proto.engine.message import Request, Response, json_response
from tests.clients.commands.command_process import CommandHome
from tests.support.background_program import running_service
from tests.support.servers.scripted_service import ScriptedService, row

SHOWN = {"capabilities": ["completion", "tools"], "model_info": {"llama.context_length": 8192}}


def answered(request: Request) -> Response:
    """Answer as an Ollama with three models, of which one has no tools and one is broken."""
    name = json.loads(request.body)["model"]
    if request.path == "/api/show":
        return json_response(200, SHOWN if name != "plain" else {"capabilities": ["completion"]})
    match name:
        case "broken":
            return json_response(500, {"error": "out of memory"})
        case "plain":
            return json_response(400, {"error": {"message": "plain does not support tools"}})
    return json_response(200, {"choices": [{"message": {"tool_calls": [{"id": "1"}]}}]})


@pytest.fixture
def url() -> Iterator[str]:
    models = {"data": [{"id": name} for name in ("llama3.2:latest", "broken", "plain")]}
    routes = [row("POST", path, answered) for path in ("/api/show", "/v1/chat/completions")]
    routes.append(row("GET", "/v1/models", lambda request: json_response(200, models)))
    with running_service(ScriptedService(routes)) as address:
        yield f"{address}/v1"


def test_list_test_and_choose(lonely: CommandHome, url: str) -> None:
    listed = lonely.run("svc", "model", "--url", url)
    assert "  llama3.2:latest\n" in listed.out
    done = lonely.run("svc", "model", "llama3.2", "--url", url)
    assert (done.code, done.err) == (0, "")
    assert "llama3.2:latest: answers after" in done.out
    assert "8192 tokens" in done.out
    path = Path(done.out.partition("Written to ")[2].partition(".yaml")[0] + ".yaml")
    assert path.read_text() == f"model:\n  default: llama3.2:latest\n  base_url: {url}\n"
    models = ["llama3.2:latest", "broken", "plain"]
    assert lonely.run("svc", "model", "--json").json == {"url": url, "model": models[0], "models": models}
    assert "It cannot call tools" in lonely.run("svc", "model", "plain", "--context", "4096").out
    assert "context_length: 4096" in path.read_text()
    path.write_text("model: {base_url: 'http://other.example/v1', default: m, api_key: sesame}\n")
    lonely.run("svc", "model", "llama3.2", "--url", url)
    assert "sesame" not in path.read_text()  # the key belongs to the other server


def test_settings_of_the_env_file_are_changed_there(lonely: CommandHome, url: str) -> None:
    home = Path(lonely.run("svc", "doctor", "--json").json["home"])
    home.mkdir(mode=0o700, exist_ok=True)
    (home / ".env").write_text(f"# mine\nSVC_MODEL_BASE_URL={url}\nSVC_MODEL=old\n")
    done = lonely.run("svc", "model", "llama3.2:latest", "--no-test")
    assert "Start the servers anew" in done.out
    assert (home / ".env").read_text() == f"# mine\nSVC_MODEL_BASE_URL={url}\nSVC_MODEL=llama3.2:latest\n"
    refused = lonely.run("svc", "model", "plain", env={"SVC_MODEL": "other"})
    assert refused.problem == "SVC_MODEL of the environment would win over the choice: unset it first"


@pytest.mark.parametrize(
    ("arguments", "code", "problem"),
    [
        ((), 2, "no model is configured: add --url, such as --url http://127.0.0.1:11434/v1"),
        (("--url", "ftp://x"), 2, "--url must be"),
        (("--url", "http://127.0.0.1:9/v1"), 1, "cannot be reached: connection refused"),
        (("lama3.2", "--url", "URL"), 2, "has no model lama3.2: is llama3.2:latest meant?"),
        (("broken", "--url", "URL"), 1, "broken does not answer: status 500: out of memory; nothing was written"),
    ],
)
def test_problems(lonely: CommandHome, url: str, arguments: tuple[str, ...], code: int, problem: str) -> None:
    done = lonely.run("svc", "model", *(url if each == "URL" else each for each in arguments))
    assert done.code == code
    assert problem in done.problem
