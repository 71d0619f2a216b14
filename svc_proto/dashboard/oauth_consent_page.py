"""Page on which the owner allows or refuses an OAuth client (decision 154): no script, no frame, two forms.

The relay holds the authorization request. The form that answers it contains its ballot, which no other site has. Names
that a client gives itself are shown as text.
"""

from __future__ import annotations

from html import escape

from svc_proto.basics import strict_json
from svc_proto.commands import Level
from svc_proto.dashboard.access import FIELDS, POLICY, DashboardAccess
from svc_proto.dashboard.ports import DashboardPort
from svc_proto.dashboard.upstream import PRIVATE, Upstream
from svc_proto.engine.flow import Flow
from svc_proto.engine.message import Request, Response
from svc_proto.engine.router import Route
from svc_proto.schema.json_object import JsonObject
from svc_proto.schema.oauth import SCOPE_ACT, SCOPE_READ
from svc_proto.service_clients.service_client import error_message_in
from svc_proto.wire.events import Headers
from svc_proto.wire.urls import encode_segment, parse_query

__all__ = ["PAGE_FIELDS", "PATH", "routes"]

PATH = "/allow"
LARGEST = 4_096  # bytes of a form
MAX_CODE = 16  # characters of a code that is forwarded
DAY = 86_400  # s
DAYS = {"1": "a day", "7": "a week", "30": "30 days", "365": "a year"}
DEFAULT_DAYS = "30"
SCOPE_LABELS = {
    SCOPE_ACT: "Look at the phone and act on it",
    SCOPE_READ: "Only look: screen, notifications, clipboard, contacts, location",
}
PAGE_FIELDS = (
    *(field for field in FIELDS if field[0] not in (b"content-security-policy", b"referrer-policy")),
    (b"content-security-policy", POLICY.replace(b"form-action 'none'", b"form-action 'self'")),
    (b"referrer-policy", b"same-origin"),  # without a referrer, browsers send a form's origin as null
)


def routes(dashboard: DashboardPort, relay: Upstream) -> list[Route]:
    """Return the routes that show and answer a request."""
    page = _ConsentPage(dashboard, relay)
    return [
        Route(method="GET", pattern=PATH, access=DashboardAccess.OWNER, handler=page.show),
        Route(method="POST", pattern=PATH, access=DashboardAccess.OWNER, handler=page.answer, body_limit=LARGEST),
    ]


class _ConsentPage:
    def __init__(self, dashboard: DashboardPort, relay: Upstream) -> None:
        self._dashboard = dashboard
        self._relay = relay

    def show(self, request: Request) -> Flow[Response]:
        code = request.query.get("code", "").strip()[:MAX_CODE]
        if not code:
            return _page(_password_form())
        problem, found = yield from self._call("GET", code)
        return _page(_password_form(problem) if problem else _question(found))

    def answer(self, request: Request) -> Flow[Response]:
        form = parse_query(request.body.decode("utf-8", "replace"))
        allow = form.get("answer") == "allow"
        said: dict[str, object] = {"ballot": form.get("ballot", ""), "allow": allow}
        if allow:
            days = form.get("days", DEFAULT_DAYS)
            said |= {
                "scope": form.get("scope", SCOPE_READ),
                "ttl_seconds": int(days if days in DAYS else DEFAULT_DAYS) * DAY,
            }
        problem, found = yield from self._call("POST", form.get("code", "")[:MAX_CODE], strict_json.dumps_bytes(said))
        if problem:
            return _page(_password_form(problem))
        self._dashboard.engine.log(Level.INFO, "authorization request answered", allowed=allow)
        return _page(_result_page(found.text("client_name"), allow))

    def _call(self, method: str, code: str, body: bytes = b"") -> Flow[tuple[str, JsonObject]]:
        """Call the relay; return the problem, or "" and the answer."""
        engine, relay = self._dashboard.engine, self._relay
        path = f"/mcp/questions/{encode_segment(code)}"
        answer = yield from relay.result_of(relay.peer.request(engine, method, path, body))
        if 400 <= answer.status < 500:
            return error_message_in(answer.body) or "the relay refuses", JsonObject()
        relay.check_response(answer)
        return "", answer.members


def _password_form(problem: str = "") -> str:
    told = f'<p role="alert"><strong>{escape(problem)}</strong></p>' if problem else ""
    return (
        f'{told}<form method="get" action="allow"><p><label>The word that the agent’s page shows '  # noqa: RUF001
        '<input name="code" size="8" maxlength="16" autocomplete="off" autocapitalize="characters" required autofocus>'
        '</label></p><p><button class="main">Look</button></p></form>'
        "<p>Only if you have just connected an agent yourself. Enter no word that another person has sent you.</p>"
    )


def _question(found: JsonObject) -> str:
    name, goes_to = escape(found.text("client_name")), escape(found.text("answer_goes_to"))
    there = " (a program on the computer that asks)" if found.get("answer_stays_there") is True else ""
    scopes = (SCOPE_ACT, SCOPE_READ) if found.text("scope") == SCOPE_ACT else (SCOPE_READ,)
    radios = "".join(
        f'<p><label><input type="radio" name="scope" value="{scope}"{" checked" if scope == scopes[0] else ""}> '
        f"{SCOPE_LABELS[scope]} <code>{scope}</code></label></p>"
        for scope in scopes
    )
    options = "".join(
        f'<option value="{days}"{" selected" if days == DEFAULT_DAYS else ""}>{text}</option>'
        for days, text in DAYS.items()
    )
    hidden = "".join(
        f'<input type="hidden" name="{name}" value="{escape(found.text(name))}">' for name in ("code", "ballot")
    )
    return (
        "<p>An agent requests access to your phone. "
        f"It calls itself <strong>{name}</strong>; this name is not verified.</p>"
        f"<p>The request came from <code>{escape(found.text('address'))}</code>. "
        f"The answer goes to <code>{goes_to}</code>{there}.</p>"
        f'<form method="post" action="allow">{hidden}<fieldset><legend>It may</legend>{radios}</fieldset>'
        f'<p><label>For <select name="days">{options}</select></label></p>'
        '<p><button class="main" name="answer" value="allow">Allow</button> '
        '<button name="answer" value="refuse">Refuse</button></p></form>'
        "<p>Allow it only if you have just connected it yourself. You can end it at any time, among the devices.</p>"
    )


def _result_page(name: str, allowed: bool) -> str:
    shown = escape(name)
    done = f"{shown} has access now; it is listed among the devices." if allowed else f"{shown} was refused."
    return f'<p role="status">{done}</p>'


def _page(body: str) -> Response:
    text = (
        '<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="color-scheme" content="light dark">'
        '<meta name="viewport" content="width=device-width, initial-scale=1"><title>Allow an agent</title>'
        '<link rel="icon" href="page/icon.svg" type="image/svg+xml"><link rel="stylesheet" href="page/app.css"></head>'
        f'<body><main class="sheet"><h1>Allow an agent</h1>{body}'
        '<p><a href="./">Back to the dashboard</a></p></main></body></html>\n'
    )
    return Response(200, Headers(((b"content-type", b"text/html; charset=utf-8"), PRIVATE)), text.encode("utf-8"))
