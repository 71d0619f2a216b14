"""Tests of the API server with a real model of llama.cpp: turns, limits, refusals and restarts.

Each test runs with the model's own server, and again with LiteLLM's proxy between, if that is installed.
"""

import http.client
import json
import subprocess
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.servers.llama_server import LITELLM_KEY, needs_litellm, needs_model, running_litellm
from tests.servers.program_process import ROOT, ProgramProcess, call, environment, running
from tests.support.forkserver import Popen, python
from tests.support.ports import free_port

pytestmark = [needs_model, pytest.mark.full]

CONTEXT = 2_048
PATIENCE = 300.0  # s for a turn of a model on a busy machine
DOT = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="  # a picture
LONG = "The weather is nice today and the birds sing. " * 18
PERSON = {
    "type": "object",
    "properties": {"name": {"type": "string", "maxLength": 12}, "age": {"type": "integer", "maximum": 99}},
    "required": ["name", "age"],
}


class RealModel:
    """A model's server that can be restarted, and an API server that uses it."""

    def __init__(self, home: Path, context: int = CONTEXT) -> None:
        self.home, self.port, self.context = home, free_port(), context
        self.api = 0
        self._running = ExitStack()

    def start(self) -> None:
        command = python("tests.servers.llama_server", str(self.port), str(self.context))
        env = environment(self.home)
        process = self._running.enter_context(
            Popen(command, cwd=ROOT, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        )
        program = ProgramProcess(process)
        self._running.callback(program.wait)
        self._running.callback(process.kill)
        program.line("^llama: ")

    def kill(self) -> None:
        self._running.close()

    def session(self) -> str:
        return str(call(self.api, "POST", "/api/sessions", {}).body["id"])

    def turn(self, session: str, message: object, **members: object) -> list[tuple[str, dict[str, Any]]]:
        return list(self.stream(f"/api/sessions/{session}/chat/stream", {"message": message, **members}))

    def stream(self, path: str, body: dict[str, object]) -> Iterator[tuple[str, dict[str, Any]]]:
        """Send a request; yield name and data of each event of the response's stream, without `[DONE]`."""
        connection = http.client.HTTPConnection("127.0.0.1", self.api, timeout=PATIENCE)
        try:
            connection.request("POST", path, json.dumps(body), {"content-type": "application/json"})
            response = connection.getresponse()
            assert response.status == 200, response.read()
            name = ""
            for line in map(bytes.strip, response):
                if line.startswith(b"event:"):
                    name = line[6:].strip().decode()
                elif line.startswith(b"data:") and line[5:].strip() != b"[DONE]":
                    yield name, json.loads(line[5:])
        finally:
            connection.close()

    def complete(self, **members: object) -> dict[str, Any]:
        asked = {"messages": [{"role": "user", "content": "Say hello."}], **members}
        answer: dict[str, Any] = call(self.api, "POST", "/v1/chat/completions", asked).body
        return answer

    def is_busy(self) -> bool:
        return any(slot["is_processing"] for slot in call(self.port, "GET", "/slots").body)


@pytest.fixture(scope="module", params=["direct", pytest.param("litellm", marks=needs_litellm)])
def real(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealModel]:
    home = tmp_path_factory.mktemp("model")
    model = RealModel(home)
    try:
        model.start()
        with ExitStack() as between:
            port = model.port
            if request.param == "litellm":
                port = between.enter_context(running_litellm(home, model.port))
            settings = {"SVC_MODEL_BASE_URL": f"http://127.0.0.1:{port}/v1", "SVC_MODEL": "smollm2"}
            settings |= {"SVC_MODEL_API_KEY": LITELLM_KEY}
            api = between.enter_context(running(home, "servers.api", "--port", "0", env=settings))
            model.api = int(api.line(r"^api: http://127\.0\.0\.1:(\d+) ")[1])
            yield model
    finally:
        model.kill()


def end_of(events: list[tuple[str, dict[str, Any]]]) -> dict[str, Any]:
    """Return the data of the event `run.completed`; assert that the turn has no error."""
    assert "error" not in [name for name, _ in events], events[-3:]
    return next(data for name, data in events if name == "run.completed")


def text_of(events: list[tuple[str, dict[str, Any]]]) -> str:
    return "".join(data["delta"] for name, data in events if name == "assistant.delta")


def test_ordinary_turn(real: RealModel) -> None:
    events = real.turn(real.session(), "Hello")
    end = end_of(events)
    assert text_of(events)
    assert end["completed"] or end["reason"]
    assert end["reason"] or 0 < end["usage"]["input_tokens"] < 1_500


def test_stream_of_a_completion(real: RealModel) -> None:
    body = {"messages": [{"role": "user", "content": "Hello"}], "stream": True, "max_tokens": 12, "top_k": 1}
    chunks = [data for _, data in real.stream("/v1/chat/completions", body)]
    assert "".join(chunk["choices"][0]["delta"].get("content") or "" for chunk in chunks if chunk["choices"])
    assert {chunk["choices"][0]["finish_reason"] for chunk in chunks if chunk["choices"]} & {"stop", "length"}


def test_stopped_turn_frees_the_slot(real: RealModel) -> None:
    run = call(real.api, "POST", "/v1/runs", {"input": "Count from one to a thousand, in words."}).body["run_id"]
    until(real.is_busy)
    assert call(real.api, "POST", f"/v1/runs/{run}/stop", {}).status == 200
    until(lambda: not real.is_busy())


def test_chat_that_outgrows_the_context_goes_on(real: RealModel) -> None:
    session = real.session()
    for number in range(6):
        end = end_of(real.turn(session, f"{number}: {LONG} Answer with one word."))
        assert end["completed"] or end["reason"]


def test_answer_that_loops_ends_with_words(real: RealModel) -> None:
    end = end_of(real.turn(real.session(), "Write hello without an end: " + "hello " * 40))
    assert end["completed"] or end["reason"]
    assert end["usage"]["output_tokens"] <= CONTEXT // 4


def test_picture_for_a_model_without_vision(real: RealModel) -> None:
    session = real.session()
    picture = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{DOT}"}}
    events = real.turn(session, [{"type": "text", "text": "What is this?"}, picture])
    end_of(events)
    assert "takes no pictures" in json.dumps(events)
    end_of(real.turn(session, "Thank you"))


def test_two_chats_share_one_slot(real: RealModel) -> None:
    with ThreadPoolExecutor(2) as pool:
        answers = pool.map(lambda words: real.complete(max_tokens=16, stop=words), ("x", "y"))
    assert all(answer["choices"][0]["message"]["content"] for answer in answers)


def test_structured_output(real: RealModel) -> None:
    schema = {"type": "json_schema", "json_schema": {"name": "person", "schema": PERSON, "strict": True}}
    answer = real.complete(response_format=schema, max_tokens=60, temperature=0)
    assert {"name", "age"} <= json.loads(answer["choices"][0]["message"]["content"]).keys()


def test_restarted_server(real: RealModel) -> None:
    session = real.session()
    real.kill()
    events = real.turn(session, "Hello")
    assert "error" in [name for name, _ in events]
    real.start()
    end_of(real.turn(session, "Hello again"))


def until(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.05)
