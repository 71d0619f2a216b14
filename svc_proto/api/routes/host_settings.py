"""Routes of the host's settings and of the API key, for the owner with the main key."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from svc_proto.api.access import ApiAccess
from svc_proto.api.host_settings import HOST_SETTINGS, HostSettings, parse_host_change
from svc_proto.api.ports import ClientPort
from svc_proto.engine.flow import Flow
from svc_proto.engine.message import JsonResponse, Request, json_response
from svc_proto.engine.router import Handler, Route

if TYPE_CHECKING:
    from svc_proto.api.openapi.change_types import HostSettingsJson
    from svc_proto.schema.api_types import KeyReloadedJson

__all__ = ["routes"]


class HostPort(ClientPort, Protocol):
    """Members of the API server that the routes of the host's settings use."""

    host_settings: HostSettings

    def reload_key(self) -> Flow[bool]:
        """Load the API key from the files again; report whether it has changed."""


def routes(api: HostPort) -> list[Route]:
    """Return the routes of the host's settings and of the API key."""
    view = _HostRoutes(api)
    rows: list[tuple[str, str, Handler]] = [
        ("GET", "/api/host", view.settings),
        ("PATCH", "/api/host", view.change),
        ("POST", "/api/key/rotate", view.rotate_key),
        ("POST", "/api/key/reload", view.reload_key),
    ]
    return [
        Route(method=method, pattern=path, access=ApiAccess.MAIN_KEY, handler=handler) for method, path, handler in rows
    ]


class _HostRoutes:
    def __init__(self, api: HostPort) -> None:
        self._api = api

    def settings(self, request: Request) -> Flow[JsonResponse[HostSettingsJson]]:
        """Return the settings as the next start finds them; a secret has no value."""
        return json_response(200, {"settings": (yield from self._api.host_settings.read())})

    def change(self, request: Request) -> Flow[JsonResponse[HostSettingsJson]]:
        """Write changed settings into `.env`, and return all as `settings` does; an empty change writes nothing."""
        change = parse_host_change(request.json_object())
        if change:
            yield from self._api.host_settings.change(request, change)
            variables = sorted(HOST_SETTINGS[name].variable for name in change)
            self._api.record_audit("setting changed", request, settings=", ".join(variables))
        return json_response(200, {"settings": (yield from self._api.host_settings.read())})

    def rotate_key(self, request: Request) -> Flow[JsonResponse[KeyReloadedJson]]:
        """Write a new API key into the files and load it, so that it counts at once; the answer does not contain it.

        Raises `Refused` 409 if no file can change the key or it cannot be loaded, 500 for an unusable file.
        """
        yield from self._api.host_settings.write_key()
        return (yield from self.reload_key(request))

    def reload_key(self, request: Request) -> Flow[JsonResponse[KeyReloadedJson]]:
        """Load the API key from the files again; report whether it has changed."""
        changed = yield from self._api.reload_key()
        if changed:
            self._api.record_audit("key rotated", request)
        return json_response(200, {"ok": True, "changed": changed})
