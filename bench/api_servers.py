"""The API, bare servers with the same output, and the model's server behind them."""

from __future__ import annotations

from bench.contestants import Contestant, Server

__all__ = ["BARE", "LOOPS", "PROXY", "api_contestant", "is_api", "model_server", "starlette_peers"]

LOOPS = ("asyncio", "uvloop", "trio", "curio")
BARE = "Starlette, makes the deltas up"
PROXY = "Starlette and httpx, proxy"


def model_server() -> Contestant:
    """Return the model's server as a contestant; it runs beside the load."""
    return Contestant("the model's server", ("bench.peers_model",))


def api_contestant(loop: str, model: Server | None = None) -> Contestant:
    """Return the API on a loop as a contestant; its store is a file, as by default."""
    arguments = ("servers.api", "--host", "127.0.0.1", "--port", "0", "--log-level", "ERROR", "--runtime", loop)
    variables = {"RELAY_SESSIONS_FILE": "svc.db", "API_SERVER_MAX_CONCURRENT_RUNS": "0"}
    if model is not None:
        variables |= {"SVC_MODEL_BASE_URL": _url(model), "SVC_MODEL": "bench"}
    return Contestant(f"API, {loop}", arguments, () if loop == "asyncio" else (loop,), tuple(variables.items()))


def starlette_peers(model: Server) -> tuple[Contestant, ...]:
    """Return two bare servers on Starlette; the first does not call the model, the second passes its stream on."""
    needs = ("starlette", "uvicorn", "httpx")
    module = ("bench.peers_starlette", "asyncio")
    return Contestant(BARE, module, needs), Contestant(PROXY, (*module, _url(model)), needs)


def is_api(one: Contestant) -> bool:
    """Report whether a contestant is this project's API, which has sessions."""
    return one.arguments[0] == "servers.api"


def _url(model: Server) -> str:
    return f"http://{model.address[0]}:{model.address[1]}/v1"
