"""Page on which the owner allows or refuses an OAuth client, whose request is at the relay (decision 154)."""

from html import escape

from svc_proto.basics import strict_json
from svc_proto.commands import Level
from svc_proto.dashboard.access import FIELDS, POLICY, DashboardAccess
from svc_proto.dashboard.ports import DashboardPort
from svc_proto.dashboard.sign_in_page import sheet_page
from svc_proto.dashboard.upstream import Upstream
from svc_proto.engine.flow import Flow
from svc_proto.engine.message import Request, Response
from svc_proto.engine.page_language import PageTexts, page_texts
from svc_proto.engine.router import Route
from svc_proto.schema.json_object import JsonObject
from svc_proto.schema.oauth import SCOPE_ACT, SCOPE_READ
from svc_proto.service_clients.service_client import error_message_in
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
    """Return the routes that show an authorization request and take the owner's answer."""
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
        texts, code = page_texts(request.headers), request.query.get("code", "").strip()[:MAX_CODE]
        if not code:
            return _page(texts, _code_form(texts))
        problem, found = yield from self._call("GET", code)
        return _page(texts, _code_form(texts, problem) if problem else _question(texts, found))

    def answer(self, request: Request) -> Flow[Response]:
        texts, form = page_texts(request.headers), parse_query(request.body.decode("utf-8", "replace"))
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
            return _page(texts, _code_form(texts, problem))
        self._dashboard.engine.log(Level.INFO, "authorization request answered", allowed=allow)
        return _page(texts, _result(texts, found.text("client_name"), allow))

    def _call(self, method: str, code: str, body: bytes = b"") -> Flow[tuple[str, JsonObject]]:
        """Call the relay about a request.

        Return "" and the answer or, for a status 4xx, the problem and an empty object.
        """
        engine, relay = self._dashboard.engine, self._relay
        path = f"/mcp/questions/{encode_segment(code)}"
        answer = yield from relay.result_of(relay.peer.request(engine, method, path, body))
        if 400 <= answer.status < 500:
            return error_message_in(answer.body) or "the relay refuses", JsonObject()
        relay.check_response(answer)
        return "", answer.members


def _code_form(texts: PageTexts, problem: str = "") -> str:
    told = f'<p role="alert"><strong>{texts.error_html(problem)}</strong></p>' if problem else ""
    label = texts.html("The word that the agent’s page shows")  # noqa: RUF001
    warning = texts.html(
        "Only if you have just connected an agent yourself. Enter no word that another person has sent you."
    )
    return (
        f'{told}<form method="get" action="allow"><p><label>{label} '
        '<input name="code" size="8" maxlength="16" autocomplete="off" autocapitalize="characters" required autofocus>'
        f'</label></p><p><button class="main">{texts.html("Look")}</button></p></form>'
        f'<p class="remark">{warning}</p>'
    )


def _question(texts: PageTexts, found: JsonObject) -> str:
    name, address, place = (escape(found.text(member)) for member in ("client_name", "address", "answer_goes_to"))
    route = {"address": f"<code>{address}</code>", "place": f"<code>{place}</code>"}
    if found.get("answer_stays_there") is True:
        way = texts.html(
            "The request came from {address}. The answer goes to {place} (a program on the computer that asks).",
            **route,
        )
    else:
        way = texts.html("The request came from {address}. The answer goes to {place}.", **route)
    scopes = (SCOPE_ACT, SCOPE_READ) if found.text("scope") == SCOPE_ACT else (SCOPE_READ,)
    radios = "".join(
        f'<p><label><input type="radio" name="scope" value="{scope}"{" checked" if scope == scopes[0] else ""}> '
        f"{texts.html(SCOPE_LABELS[scope])} <code>{scope}</code></label></p>"
        for scope in scopes
    )
    options = "".join(
        f'<option value="{days}"{" selected" if days == DEFAULT_DAYS else ""}>{texts.html(text)}</option>'
        for days, text in DAYS.items()
    )
    hidden = "".join(
        f'<input type="hidden" name="{member}" value="{escape(found.text(member))}">' for member in ("code", "ballot")
    )
    wish = texts.html(
        "An agent requests access to your phone. It calls itself {name}; this name is not verified.",
        name=f"<strong>{name}</strong>",
    )
    warning = texts.html(
        "Allow it only if you have just connected it yourself. You can end it at any time, among the devices."
    )
    return (
        f"<p>{wish}</p><p>{way}</p>"
        f'<form method="post" action="allow">{hidden}<fieldset><legend>{texts.html("It may")}</legend>{radios}'
        f'</fieldset><p><label>{texts.html("For")} <select name="days">{options}</select></label></p>'
        f'<p><button class="main" name="answer" value="allow">{texts.html("Allow")}</button> '
        f'<button name="answer" value="refuse">{texts.html("Refuse")}</button></p></form>'
        f'<p class="remark">{warning}</p>'
    )


def _result(texts: PageTexts, name: str, allowed: bool) -> str:
    if allowed:
        done = texts.html("{name} has access now; it is listed among the devices.", name=escape(name))
    else:
        done = texts.html("{name} was refused.", name=escape(name))
    return f'<p role="status">{done}</p>'


def _page(texts: PageTexts, body: str) -> Response:
    back = f'<p><a href="./">{texts.html("Back to the dashboard")}</a></p>'
    return sheet_page(texts, texts.html("Allow an agent"), body + back)
