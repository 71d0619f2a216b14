"""Shorter forms of a pairing payload for a small screen, all of which clients in use parse (wire core 3.1 and 3.2).

Members that repeat a default or another member are left out: `tls` false, the API's usual port beside `host`, and the
transport hints in `endpoints`. The signature is left out as well, since no client verifies it and it covers the full
form. The last forms have one route, and the shortest leaves out the version 1, which clients assume.
"""

from collections.abc import Mapping

from svc_proto.basics.brand import BRANDS
from svc_proto.machines.pairing_payload import encode_payload
from svc_proto.schema.json_object import JsonObject

__all__ = ["compact_payloads", "payload_key"]

API_PORT = 8642  # that clients assume without the member
ONE_ROUTE = ("host", "port", "key", "tls", "relay")


def compact_payloads(text: str) -> list[str]:
    """Return the text of a QR code, then its shorter forms, without redundant members: all routes, one alone.

    There is no shorter form with all routes unless `endpoints` has several, and none at all without `host`.
    """
    payload = JsonObject.parse_or_empty(text.encode())
    if not payload.text("host"):
        return [text]
    routes = payload.objects("endpoints")
    whole = {name: value for name, value in payload.items() if name != "sig"}
    forms = [text]
    if len(routes) > 1:
        whole["endpoints"] = [_short_route(route) for route in routes]
        forms.append(encode_payload(_without_defaults(whole)))
    alone: dict[str, object] = {_brand_member(payload): _version(payload)}
    alone.update({name: payload[name] for name in ONE_ROUTE if name in payload})
    forms.append(encode_payload(_without_defaults(alone)))
    if _version(payload) == 1:
        alone.pop(_brand_member(payload))  # clients assume version 1 without the member
        forms.append(encode_payload(_without_defaults(alone)))
    return list(dict.fromkeys(forms))


def payload_key(text: str) -> str:
    """Return the API key in the text of a QR code; empty without one."""
    return JsonObject.parse_or_empty(text.encode()).text("key")


def _brand_member(payload: Mapping[str, object]) -> str:
    """Return the name of the member that holds the version; if several brands' are present, that of older clients."""
    return next(brand.qr_key for brand in reversed(BRANDS.values()) if brand.qr_key in payload)


def _version(payload: JsonObject) -> int:
    return 2 if len(payload.get_object("relay")) > 2 else 1  # more than url and code


def _without_defaults(payload: Mapping[str, object]) -> dict[str, object]:
    usual = {"tls": False, "port": API_PORT}
    return {name: value for name, value in payload.items() if name not in usual or value != usual[name]}


def _short_route(route: JsonObject) -> dict[str, object]:
    api = {name: value for name, value in route.get_object("api").items() if name != "tls" or value is not False}
    relay = {name: value for name, value in route.get_object("relay").items() if name != "transport_hint"}
    return {**route, "api": api, "relay": relay}
