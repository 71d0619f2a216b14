"""Device Control: one table of routes, each forwarded to a phone over its WebSocket (wire bridge 2 and 3).

The caller waits in a flow; the pending command lives in `machines.bridge`, which settles it exactly once: by the
phone's answer, by the loss of its socket, or after 30 seconds.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from svc_proto.basics import strict_json
from svc_proto.basics.brand import HERMES, SVC
from svc_proto.basics.entropy import new_uuid
from svc_proto.commands import Level
from svc_proto.engine.flow import Flow, wait
from svc_proto.engine.message import Request, Response, json_response, parse_json
from svc_proto.engine.router import Route
from svc_proto.machines.arguments import check_arguments
from svc_proto.machines.bridge import Outcome, relay_outcome
from svc_proto.machines.phones import take_selector
from svc_proto.machines.session import Session
from svc_proto.relay.access import Access
from svc_proto.schema.members import Members

if TYPE_CHECKING:
    from svc_proto.relay.service import Relay

__all__ = ["DEVICE_CONTROL", "drive", "routes"]

GRACE = 1.0  # s after a command's own deadline at which its caller stops waiting, come what may

DEVICE_CONTROL: tuple[tuple[str, str], ...] = (
    # core
    ("GET", "/ping"),
    ("POST", "/setup"),
    ("GET", "/current_app"),
    ("POST", SVC.self_foreground),
    ("POST", HERMES.self_foreground),
    # read
    ("GET", "/screen"),
    ("GET", "/screen_hash"),
    ("POST", "/diff_screen"),
    ("POST", "/find_nodes"),
    ("POST", "/describe_node"),
    ("GET", "/screenshot"),
    ("GET", "/get_apps"),
    ("GET", "/apps"),
    # act
    ("POST", "/tap"),
    ("POST", "/tap_text"),
    ("POST", "/long_press"),
    ("POST", "/drag"),
    ("POST", "/type"),
    ("POST", "/swipe"),
    ("POST", "/scroll"),
    ("POST", "/press_key"),
    ("POST", "/wait"),
    ("POST", "/open_app"),
    ("GET", "/clipboard"),
    ("POST", "/clipboard"),
    ("POST", "/media"),
    ("POST", "/send_intent"),
    ("POST", "/broadcast"),
    # events
    ("GET", "/events"),
    ("POST", "/events/stream"),
    # sideload-only
    ("GET", "/location"),
    ("POST", "/search_contacts"),
    ("POST", "/call"),
    ("POST", "/send_sms"),
    ("POST", "/share_media"),
    ("POST", "/send_mms"),
)
"""Every (method, path) that is forwarded: the 34 paths of SPEC.md, `/clipboard` twice, and the self-foreground
route in both spellings. A phone is sent the original one, whichever was called."""

SENT_AS = {SVC.self_foreground: HERMES.self_foreground}


def routes(relay: Relay) -> list[Route]:
    """The rows of this theme."""
    control = _Control(relay)
    return [
        Route(method=method, pattern=path, access=Access.BRIDGE, handler=control.forward)
        for method, path in DEVICE_CONTROL
    ]


class _Control:
    def __init__(self, relay: Relay) -> None:
        self._relay = relay

    def forward(self, request: Request) -> Flow[Response]:
        by = request.principal
        assert isinstance(by, Session)
        method = "GET" if request.method == "HEAD" else request.method
        given = _arguments(request) if method == "POST" else {}
        outcome = yield from drive(self._relay, by, method, request.path, request.query, given)
        return json_response(outcome.status, outcome.body, outcome.headers)


def drive(
    relay: Relay, by: Session, method: str, path: str, query: Mapping[str, object], given: Mapping[str, object]
) -> Flow[Outcome]:
    """Have a phone do what a row of the table says, and wait for it. `Refused` before it reaches one."""
    engine = relay.engine
    selector, params, body = take_selector(query, given)
    check_arguments(method, path, params if method == "GET" else body)
    phone, client = relay.phone_for(selector)
    sent = SENT_AS.get(path, path)
    request_id = new_uuid(engine.entropy)
    pending = relay.bridge.begin(
        request_id,
        socket=phone.socket,
        method=method,
        path=path,
        params=params,
        body=body,
        now=engine.now,
        device_id=phone.device_id,
        device_name=phone.name,
        alias_used=selector,
        asked_by=by.device_name,
    )
    ticket = relay.park(request_id)
    try:
        payload: dict[str, object] = {
            "request_id": request_id,
            "method": method,
            "path": sent,
            "params": params,
            "body": params if method == "GET" else body,
        }
        if not client.send("bridge", "bridge.command", payload, request_id):
            outcome: object = relay.bridge.send_failed(request_id)
        else:
            outcome = yield from wait(ticket, pending.deadline + GRACE)
    finally:
        relay.unpark(request_id)
    if not isinstance(outcome, Outcome):
        outcome = relay_outcome("phone_timeout")
    # What the command was about, and what came of it in words, is nobody's business.
    what = {"phone": phone.name, "command": f"{method} {sent}", "status": outcome.status}
    engine.log(Level.INFO, "phone driven", by=by.device_name, session=by.token_prefix, **what)
    return outcome


def _arguments(request: Request) -> dict[str, object]:
    """The body of a POST without null members; what is not a JSON object counts as empty (wire bridge 2.1)."""
    try:
        members = Members.of(parse_json(request.body) if request.body else None)
    except strict_json.JsonError:
        return {}
    return {key: member for key, member in members.items() if member is not None}
