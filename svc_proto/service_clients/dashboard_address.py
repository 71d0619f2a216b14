"""Address of the dashboard in the payload of an invite: only on routes by which a phone reaches the dashboard."""

from collections.abc import Mapping

from svc_proto.basics.brand import BRANDS
from svc_proto.schema.json_object import JsonObject
from svc_proto.service_clients.bind_addresses import LOCAL_HOSTS, WILDCARD_ADDRESSES, bracket_ipv6

__all__ = ["dashboard_at", "name_dashboard", "with_dashboard_member"]

ROLES = ("lan", *(brand.mesh_role for brand in BRANDS.values()))  # routes to an address of this host


def dashboard_at(dashboard: tuple[str, int], host: str) -> str | None:
    """Return the dashboard's URL at an address of this host; None unless it is bound to that address or to a wildcard.

    None also for each of `LOCAL_HOSTS`, which no phone can use. `dashboard` is the host and port that it is bound to.
    """
    bound, port = dashboard
    if host in LOCAL_HOSTS or (bound not in WILDCARD_ADDRESSES and bound != host):
        return None
    return f"http://{bracket_ipv6(host)}:{port}"


def with_dashboard_member(endpoint: object, dashboard: tuple[str, int]) -> object:
    """Return a route of an invite with the dashboard's URL.

    The route is unchanged if it has a member `dashboard`, if its role is not one of `ROLES`, or if `dashboard_at` has
    no URL for the host of its API.
    """
    route = JsonObject.of(endpoint)
    host = route.get_object("api").text("host")
    url = dashboard_at(dashboard, host) if host and route.text("role").lower() in ROLES else None
    return endpoint if url is None or "dashboard" in route else {**route, "dashboard": {"url": url}}


def name_dashboard(payload: Mapping[str, object], dashboard: tuple[str, int] | None) -> dict[str, object]:
    """Return the payload of an invite with the dashboard's URL, if any, in its routes and as `dashboard_url`.

    The payload is unchanged if it has a `dashboard_url`, or if `dashboard` is None.
    """
    members = JsonObject(payload)
    if dashboard is None or "dashboard_url" in members:
        return members
    bound = dashboard[0]
    if "endpoints" in members:
        members["endpoints"] = [with_dashboard_member(each, dashboard) for each in members.array("endpoints")]
        named = [JsonObject.of(each).get_object("dashboard").text("url") for each in members.array("endpoints")]
        url = next(filter(None, named), None)
    else:
        url = dashboard_at(dashboard, members.text("host") if bound in WILDCARD_ADDRESSES else bound)
    return members if url is None else {**members, "dashboard_url": url}
