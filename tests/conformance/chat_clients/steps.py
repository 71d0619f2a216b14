"""Runner for the steps of one Python client. It is imported in the client's environment: standard library only.

`python -m tests.conformance.chat_clients.client_NAME INSTRUCTIONS`; the program prints its observations as JSON.
"""

import json
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import redirect_stdout
from functools import partial
from typing import Any, TypedDict
from urllib.request import urlopen

PROMPTS = {
    "plain": "Say hello",
    "stream": "Say hello, and think first",
    "tools": "Weather in Rome and Oslo?",
    "structured": "Describe Rome as data",
    "image": "Count the pictures",
    "first turn": "My name is Ada",
    "second turn": "Repeat my first message",
    "refused": "Fail",
    "own tools": "Remember that I like tea",
    "cancel": "Count slowly",
}
CANCELLED_WITHIN = 2.0  # s from the end of the client to the end of the model's request
PICTURE = (  # a PNG of one pixel
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg=="
)
CLOSED = {"type": "object", "additionalProperties": False}
NAME, DEGREES = {"city": {"type": "string"}}, {"degrees": {"type": "integer"}}
CITY = {**CLOSED, "properties": NAME, "required": ["city"]}
PLACE = {**CLOSED, "properties": {**NAME, **DEGREES}, "required": ["city", "degrees"]}
Steps = Mapping[str, Callable[[], object]]


class Instructions(TypedDict):
    """Instructions for a client program, as a JSON object: URLs, key and route."""

    url: str  # base URL of the API server, which ends in `/v1`
    key: str
    route: str  # "completions" or "responses"
    model: str  # URL that reports how many answers the scripted model is writing


def run_steps(make: Callable[[Instructions], Steps]) -> None:
    """Run the steps that `make` returns for the instructions, and print what each has returned or raised, as JSON.

    Each name is written to standard error before its step: the suite ends a program that writes nothing for long.
    """
    instructions: Instructions = json.loads(sys.argv[1])
    seen: dict[str, object] = {}
    with redirect_stdout(sys.stderr):  # litellm prints
        for name, step in make(instructions).items():
            print(name, file=sys.stderr, flush=True)  # noqa: T201 - as below
            try:
                seen[name] = step()
            except Exception as problem:
                seen[name] = f"{type(problem).__name__}: {problem}"[:500]
    print(json.dumps(seen))  # noqa: T201 - the output of this program


def text_steps(ask: Callable[[str], object]) -> Steps:
    """Return the steps whose result is the text of an answer; `ask` returns it for a prompt."""
    return {name: partial(ask, PROMPTS[name]) for name in ("plain", "refused", "own tools")}


def collect(pieces: Iterable[str | None]) -> list[object]:
    """Return the text of a stream, and whether the text came in more than one piece."""
    found = [piece for piece in pieces if piece]
    return ["".join(found), len(found) > 1]


def status_of(call: Callable[[], Any]) -> object:
    """Return the HTTP status of the error that a call raises, else a text: the error, or `no error`."""
    try:
        call()
    except Exception as problem:
        cause: BaseException | None = problem
        while cause is not None:
            status = getattr(cause, "status_code", None)
            if status is not None:
                return status
            cause = cause.__cause__ or cause.__context__
        return f"{type(problem).__name__}: {problem}"[:500]
    return "no error"


def get_weather(city: str) -> str:
    """Weather of a city."""
    return "sunny"


def is_cancelled(instructions: Instructions) -> bool:
    """Wait until the model has no unfinished answer; return False after `CANCELLED_WITHIN` seconds."""
    until = time.monotonic() + CANCELLED_WITHIN
    while time.monotonic() < until:
        with urlopen(instructions["model"]) as page:
            if json.load(page)["open"] == 0:
                return True
        time.sleep(0.05)
    return False
