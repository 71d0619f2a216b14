"""HTML pages for the browser that an OAuth client has opened: the code for the owner, its expiry, or an error.

The pages have no script, load nothing, and cannot be framed. All data of the client is escaped.
"""

from base64 import b64encode
from hashlib import sha256
from html import escape

from svc_proto.engine.message import Response
from svc_proto.engine.page_language import PageTexts
from svc_proto.wire.events import Headers

__all__ = ["error_page", "redirect_to", "expired_page", "waiting_page"]

STYLE = (
    "body{font:16px/1.5 system-ui,sans-serif;max-width:34rem;margin:12vh auto;padding:0 1rem;color-scheme:light dark}"
    "code{font-size:1.1em}.word{font:600 2.5rem monospace;letter-spacing:.2em}"
)
_HASH = b64encode(sha256(STYLE.encode("ascii")).digest())
PRIVATE = (
    (b"cache-control", b"no-store"),
    (b"referrer-policy", b"no-referrer"),
    (b"x-content-type-options", b"nosniff"),
)
FIELDS = (
    (b"content-type", b"text/html; charset=utf-8"),
    *PRIVATE,
    (b"x-frame-options", b"DENY"),
    (
        b"content-security-policy",
        b"default-src 'none'; style-src 'sha256-%s'; img-src data:; base-uri 'none'; form-action 'none'; "
        b"frame-ancestors 'none'" % _HASH,
    ),
)
REFRESH_HEADER = (b"refresh", b"2")  # s until the browser reloads


def waiting_page(texts: PageTexts, name: str, code: str) -> Response:
    """Return the page with the code that the owner is to type; it reloads itself at intervals."""
    wish = texts.html(
        "An agent that calls itself “{name}” asks for the phone. If that is you: open the dashboard, choose {link}, "
        "and type",
        name=escape(name),
        link=f"<b>{texts.html('Allow an agent')}</b>",
    )
    way = texts.html(
        "or run {command} on the host of the relay. This page goes on by itself. Never type a word that another person "
        "has sent you.",
        command=f"<code>svc mcp allow {escape(code)}</code>",
    )
    body = f'<p>{wish}</p><p class="word">{escape(code)}</p><p>{way}</p>'
    return _page(200, texts, texts.html("Waiting for the owner"), body, REFRESH_HEADER)


def expired_page(texts: PageTexts) -> Response:
    """Return the page, with status 404, which reports that a consent request is over."""
    advice = texts.html("Go back to the agent, and connect again if it asks for that.")
    return _page(404, texts, texts.html("This question is over"), f"<p>{advice}</p>")


def error_page(texts: PageTexts, status: int, why: str) -> Response:
    """Return the error page. It never redirects, since the redirect URI may be an attacker's."""
    mistake = texts.html("The agent has sent you here with a mistake: {reason}.", reason=texts.error_html(why))
    return _page(status, texts, texts.html("This cannot be asked"), f"<p>{mistake}</p>")


def redirect_to(url: str) -> Response:
    """Return a 303 redirect to the URL, which the browser requests with GET."""
    return Response(303, Headers(((b"location", url.encode("ascii")), *PRIVATE)))


def _page(status: int, texts: PageTexts, title: str, body: str, *fields: tuple[bytes, bytes]) -> Response:
    text = (
        f'<!doctype html><html lang="{texts.language}"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f'<title>{title}</title><link rel="icon" href="data:,"><style>{STYLE}</style></head>'
        f"<body><main><h1>{title}</h1>{body}</main></body></html>\n"
    )
    return Response(status, Headers((*FIELDS, *fields)), text.encode("utf-8"))
