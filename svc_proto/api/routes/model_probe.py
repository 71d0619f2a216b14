"""Route of the probe of a model's server: its models, and a test of one before the owner chooses it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from svc_proto.api.access import ApiAccess
from svc_proto.api.agent_settings import is_usable_base_url, origin_of
from svc_proto.api.errors import invalid_request
from svc_proto.api.ports import SettingsPort
from svc_proto.engine.flow import Flow
from svc_proto.engine.message import JsonResponse, Request, json_response
from svc_proto.engine.router import Route
from svc_proto.service_clients.model_probe import find_abilities, list_models, try_model

if TYPE_CHECKING:
    from svc_proto.api.openapi.change_types import ModelProbedJson

__all__ = ["routes"]


def routes(api: SettingsPort) -> list[Route]:
    """Return the route that lists and tests models of a server."""

    def probe(request: Request) -> Flow[JsonResponse[ModelProbedJson]]:
        """List the models of `base_url`, or of the configured server; with `model`, describe and test that one.

        No model is tested if the server does not respond; an error status of the list does not prevent the test. If the
        model has tools, its stored profiles on that server are dropped. Raises `Refused` 400 without a usable address.
        """
        body = request.json_object()
        endpoint = (yield from api.settings()).endpoint
        url = (body.string("base_url") or (endpoint.base_url if endpoint is not None else "")).rstrip("/")
        if not is_usable_base_url(url):
            raise invalid_request(
                "base_url must be an http:// or https:// URL with a host, without a password or a query"
            )
        # The key of the configured server is sent to that server alone.
        key = endpoint.api_key if endpoint is not None and origin_of(endpoint.base_url) == origin_of(url) else ""
        listing = yield from list_models(api.engine, url, key)
        problem = listing.problem or (f"it answered {listing.status}" if listing.status != 200 else "")
        found: ModelProbedJson = {"base_url": url, "models": list(listing.names), "problem": None}
        name = body.string("model")
        if name and not listing.problem:
            able = yield from find_abilities(api.engine, url, name, key, listing)
            trial = yield from try_model(api.engine, url, name, key)
            tools = False if trial.refuses_tools else trial.called_tool or able.has_tools
            problem = "" if trial.refuses_tools else trial.problem
            if tools:
                yield from api.parts.profiles.forget(url, name)
            found |= {"model": name, "context": able.context, "tools": tools, "seconds": round(trial.seconds, 3)}
        found["problem"] = problem or None
        return json_response(200, found)

    return [Route(method="POST", pattern="/api/model/probe", access=ApiAccess.MAIN_KEY, handler=probe)]
