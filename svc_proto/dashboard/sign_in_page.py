"""Page on which a browser signs in with the dashboard's password.

A browser that opens a page of the owner without a needed session is redirected here. Other requests without a needed
credential get 401 with a challenge for HTTP Basic, or 429 at the limits of wrong passwords.
"""

from html import escape

from svc_proto.basics.errors import Refused
from svc_proto.dashboard.access import DashboardAccess
from svc_proto.dashboard.ports import SignInPort
from svc_proto.dashboard.sign_in import cookie_token
from svc_proto.dashboard.upstream import PRIVATE
from svc_proto.engine.flow import Flow
from svc_proto.engine.message import Request, Response
from svc_proto.engine.page_language import PageTexts, page_texts
from svc_proto.engine.router import Route
from svc_proto.wire.events import Headers, RequestHead
from svc_proto.wire.urls import encode_segment, parse_query

__all__ = ["PATH", "redirect_to_sign_in", "routes", "sheet_page"]

PATH = "/login"
LARGEST = 4_096  # bytes of a form
MAX_NEXT = 1_024  # characters of the address of the page that was requested; a longer one is dropped


def routes(dashboard: SignInPort) -> list[Route]:
    """Return the routes of the page."""
    page = _SignInPage(dashboard)
    access = DashboardAccess.SIGN_IN
    return [
        Route(method="GET", pattern=PATH, access=access, handler=page.show),
        Route(method="POST", pattern=PATH, access=access, handler=page.sign_in, body_limit=LARGEST),
    ]


def redirect_to_sign_in(refused: Refused, head: RequestHead, prefix: str) -> Response | None:
    """Return the redirect for a browser that opens a page without a session; None for any other refusal."""
    accepts_page = b"text/html" in (head.headers.get(b"accept") or b"")
    if refused.code != "password_needed" or head.method != "GET" or not accepts_page:
        return None
    target = head.target if len(head.target) <= MAX_NEXT else ""
    return _redirect(f"{prefix}{PATH}?next={encode_segment(target)}")


def sheet_page(
    texts: PageTexts, title: str, body: str, status: int = 200, fields: tuple[tuple[bytes, bytes], ...] = ()
) -> Response:
    """Return a page with a title above a body; both are translated HTML."""
    text = (
        f'<!doctype html><html lang="{texts.language}"><head><meta charset="utf-8">'
        '<meta name="color-scheme" content="light dark">'
        f'<meta name="viewport" content="width=device-width, initial-scale=1"><title>{title}</title>'
        '<link rel="icon" href="page/icon.svg" type="image/svg+xml"><link rel="stylesheet" href="page/app.css"></head>'
        '<body><main class="sheet"><img class="mark" src="page/icon.svg" alt="" width="36" height="36">'
        f"<h1>{title}</h1>{body}</main></body></html>\n"
    )
    html = (b"content-type", b"text/html; charset=utf-8")
    return Response(status, Headers((html, PRIVATE, *fields)), text.encode("utf-8"))


class _SignInPage:
    def __init__(self, dashboard: SignInPort) -> None:
        self._dashboard = dashboard

    def show(self, request: Request) -> Response:
        """Return the form; redirect a signed-in browser, and any if no password is set, to the requested page."""
        gate = self._dashboard.gate
        after = self._next(request.query.get("next", ""))
        if not self._dashboard.config.password or gate.sign_ins.find(cookie_token(request.headers)) is not None:
            return _redirect(after)
        texts = page_texts(request.headers)
        return sheet_page(texts, texts.html("Sign in"), _form(texts, after))

    def sign_in(self, request: Request) -> Flow[Response]:
        """Check the password; set the cookie of a new session and return to the requested page.

        After a wrong password, or too many of them, return the form with the problem. Without a configured password,
        only redirect.
        """
        dashboard, form = self._dashboard, parse_query(request.body.decode("utf-8", "replace"))
        after = self._next(form.get("next", ""))
        if not dashboard.config.password:
            return _redirect(after)
        try:
            cookie = yield from dashboard.sign_in(request, form.get("password", ""))
        except Refused as refused:
            texts = page_texts(request.headers)
            body = _form(texts, after, refused.message)
            return sheet_page(texts, texts.html("Sign in"), body, refused.status, refused.headers)
        return _redirect(after, cookie)

    def _next(self, target: str) -> str:
        """Return the page to show after the sign-in: `target` if it is a path of this dashboard, else its root."""
        prefix = self._dashboard.config.root_path
        own = target.startswith(f"{prefix}/") and not target.startswith("//") and "\\" not in target
        return target if own and target.isascii() and target.isprintable() else f"{prefix}/"


def _redirect(target: str, *fields: tuple[bytes, bytes]) -> Response:
    return Response(303, Headers(((b"location", target.encode("ascii")), PRIVATE, *fields)))


def _form(texts: PageTexts, after: str, problem: str = "") -> str:
    told = f'<p role="alert"><strong>{texts.error_html(problem)}</strong></p>' if problem else ""
    place = texts.html(
        "It is {variable} in {file} of the service home.",
        variable="<code>SVC_DASHBOARD_PASSWORD</code>",
        file="<code>.env</code>",
    )
    return (
        f'{told}<form method="post" action="login"><input type="hidden" name="next" value="{escape(after)}">'
        f'<p><label>{texts.html("Password")} <input type="password" name="password" autocomplete="current-password" '
        f'required autofocus></label></p><p><button class="main">{texts.html("Sign in")}</button></p></form>'
        f'<p class="remark">{place}</p>'
    )
