"""List of an upstream endpoint's models, fetched on demand and cached: a list for 60 s, a failure for 5 s."""

from attrs import frozen

from svc_proto.agent.interface import ModelEndpoint
from svc_proto.commands import Level
from svc_proto.engine.core import Engine
from svc_proto.engine.flow import Flow
from svc_proto.engine.http_client import bearer_header, fetch
from svc_proto.engine.sync import Lock
from svc_proto.facts import Failure
from svc_proto.service_clients.model_address import MODELS, endpoint_url

__all__ = ["ModelList"]

FETCH_TIMEOUT = 5.0  # s for the upstream's answer
CACHE_TTL = 60.0  # s for which an answer is used
FAILURE_CACHE_TTL = 5.0  # s before the next request after a failure
MAX_MODELS = 1_000  # models of a model server's list; further ones are ignored
MAX_NAME = 256  # characters


@frozen
class _CachedModels:
    route: ModelEndpoint
    models: tuple[str, ...] | None
    until: float  # monotonic


class ModelList:
    """Cached `GET {base_url}/models` of one endpoint, failures too.

    Concurrent callers for the same endpoint share one request.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._asking = Lock(engine)
        self._found: _CachedModels | None = None

    def list_models(self, route: ModelEndpoint) -> Flow[tuple[str, ...] | None]:
        """Return the model ids in the upstream's order, at most `MAX_MODELS`; None if there is no list.

        Ids of more than `MAX_NAME` characters are left out.
        """
        yield from self._asking.acquire()
        try:
            now = self._engine.now.mono
            found = self._found
            if found is None or found.route != route or found.until <= now:
                models = yield from self._fetch(route)
                until = self._engine.now.mono + (FAILURE_CACHE_TTL if models is None else CACHE_TTL)
                found = self._found = _CachedModels(route, models, until)
            return found.models
        finally:
            self._asking.release()

    def _fetch(self, route: ModelEndpoint) -> Flow[tuple[str, ...] | None]:
        headers = ((b"accept", b"application/json"), *bearer_header(route.api_key))
        url = endpoint_url(route.base_url, MODELS)
        answer = yield from fetch(self._engine, "GET", url, headers=headers, within=FETCH_TIMEOUT)
        problem = answer.kind.value if isinstance(answer, Failure) else f"status {answer.status}"
        if not isinstance(answer, Failure) and answer.status == 200:
            if answer.members.array_or_none("data") is not None:
                names = (row.text("id") for row in answer.members.objects("data")[:MAX_MODELS])
                return tuple(name for name in names if 0 < len(name) <= MAX_NAME)
            problem = "not a list of models"
        self._engine.log(Level.WARNING, "models not listed", problem=problem)
        return None
