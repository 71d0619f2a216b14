"""Suite of other projects' clients of OpenAI's API, unmodified, each on its routes, with a scripted model."""

import json
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from attrs import field, frozen

from tests.conformance.chat_clients.model import FAILURE, HELLO, REMEMBERED, ROME, ClientModel
from tests.conformance.chat_clients.steps import PROMPTS, Instructions
from tests.conformance.external_tools import locked_npm, locked_python, program, run_steps
from tests.conformance.result import Result
from tests.servers.program_process import running
from tests.support.background_program import running_service

__all__ = ["CLIENTS", "WANTED", "chat_clients"]

FOLDER = Path(__file__).parent / "chat_clients"
KEY = "sk-clients-5d20"
SILENCE = 120.0  # s from one step of a client to the next
FAILED_IGNORED = {"refused stream": "the client ignores `response.failed`"}
OPENAI_3, OPENAI_2 = "chat-clients", "chat-clients-openai-2"  # lock files
ROUTES = ("completions", "responses")
WANTED: Mapping[str, object] = {
    "plain": HELLO,
    "stream": [HELLO, True],
    "tools": "Rome sunny, Oslo sunny",
    "streamed tools": "Rome sunny, Oslo sunny",
    "structured": ROME,
    "image": "1 picture",
    "usage": [[7, 4], [7, 4]],
    "second turn": f"{PROMPTS['first turn']}, 2",
    "wrong key": 401,
    "unknown model": 404,
    "refused": FAILURE,
    "refused stream": FAILURE,
    "own tools": REMEMBERED,
    "cancel": True,
}
OPTIONAL = ("unknown model",)  # only the packages of OpenAI request the list of models


@frozen(kw_only=True)
class ChatClient:
    """A client: its package, its program in the folder `chat_clients`, its lock file, and the routes that it uses."""

    package: str
    program: str
    lock: str = OPENAI_3
    routes: tuple[str, ...] = ROUTES
    arguments: tuple[str, ...] = ()  # behind the instructions
    left_out: Mapping[str, str] = field(factory=dict)  # abilities on the route of responses, with the reason

    def command(self) -> tuple[list[str], dict[str, str]]:
        """Return the command of the program, and its environment; the first call installs its locked packages."""
        if self.program.endswith(".mjs"):
            return [program("node"), str(FOLDER / self.program)], {"PACKAGES": str(locked_npm(FOLDER))}
        module = f"tests.conformance.chat_clients.{self.program}"
        return [str(locked_python(self.lock)), "-m", module], {}


CLIENTS = (
    ChatClient(package="openai 3.57.0", program="client_openai"),
    ChatClient(package="openai 2.54.0", program="client_openai", lock=OPENAI_2),
    ChatClient(package="openai 6.49.0 (npm)", program="client_openai.mjs"),
    ChatClient(package="langchain-openai 1.7.4", program="client_langchain"),
    ChatClient(
        package="llama-index-llms-openai-like 0.8.1",
        program="client_llama_index",
        lock=OPENAI_2,
        left_out=FAILED_IGNORED,
    ),
    ChatClient(package="pydantic-ai-slim 2.68.0", program="client_pydantic_ai"),
    ChatClient(package="litellm 1.110.2", program="client_litellm", lock=OPENAI_2),
    ChatClient(package="openai-agents 0.24.0", program="client_agents"),
    ChatClient(package="@ai-sdk/openai 3.0.141 (npm)", program="client_ai_sdk.mjs"),
    ChatClient(
        package="@ai-sdk/openai-compatible 2.0.92 (npm)",
        program="client_ai_sdk.mjs",
        arguments=("compatible",),
        routes=("completions",),
    ),
    ChatClient(package="llm 0.36", program="client_llm", left_out=FAILED_IGNORED),
)


def chat_clients(runtime: str) -> Result:
    """Run each client on each of its routes, and compare its observations with the expected ones."""
    result = Result(f"chat clients on {runtime}")
    commands = [client.command() for client in CLIENTS]
    with _server(runtime) as (url, model):
        for client, (command, env) in zip(CLIENTS, commands, strict=True):
            for route in client.routes:
                told: Instructions = {"url": url, "key": KEY, "route": route, "model": model}
                seen = run_steps([*command, json.dumps(told), *client.arguments], silence=SILENCE, env=env)
                left_out = client.left_out if route == "responses" else {}
                for ability, wanted in WANTED.items():
                    case, found = f"{client.package}, {route}: {ability}", seen.get(ability)
                    if ability in left_out:
                        result.leave_out(case, left_out[ability])
                    elif wanted == FAILURE:
                        result.note(case, None if FAILURE in str(found) else f"{found!r:.500}")
                    elif found is not None or ability not in OPTIONAL:
                        result.compare(case, found, wanted)
    return result


@contextmanager
def _server(runtime: str) -> Iterator[tuple[str, str]]:
    """Run an API server with the scripted model; yield its base URL, and that of the number of unfinished answers."""
    with (
        tempfile.TemporaryDirectory() as home,
        running_service(ClientModel()) as model,
        running(Path(home), "servers.api", "--port", "0", env=_environment(model), runtime=runtime) as api,
    ):
        port = int(api.line(r"^api: http://127\.0\.0\.1:(\d+) ")[1])
        yield f"http://127.0.0.1:{port}/v1", f"{model}/open"
        api.stop()


def _environment(model: str) -> dict[str, str]:
    return {"API_SERVER_KEY": KEY, "SVC_MODEL_BASE_URL": f"{model}/v1", "SVC_MODEL": "m"}
