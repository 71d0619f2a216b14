"""Files of the page: held in memory, and revalidated by their tag."""

from collections.abc import Callable, Mapping

from svc_proto.basics import strict_json
from svc_proto.dashboard.access import DashboardAccess
from svc_proto.engine.message import Request, Response
from svc_proto.engine.router import Route
from svc_proto.engine.static_asset import StaticAsset
from svc_proto.schema.device_control_routes import DEVICE_CONTROL
from svc_proto.wire.events import Headers

__all__ = ["command_sentences", "path_of", "routes"]

INDEX = "index.html"
OF_ROOT = {INDEX: "/", "sw.js": "/sw.js"}  # a service worker serves the folder that it is in
OF_SIGN_IN = ("app.css", "icon.svg")  # files that the page of the sign-in needs
KINDS = {
    "css": b"text/css; charset=utf-8",
    "html": b"text/html; charset=utf-8",
    "js": b"text/javascript; charset=utf-8",
    "json": b"application/json",
    "svg": b"image/svg+xml",
    "txt": b"text/plain; charset=utf-8",
    "webmanifest": b"application/manifest+json",
    "woff2": b"font/woff2",
}
OF_DOCUMENTS = (INDEX, "icon.svg", "sw.js")  # files to which the policies of documents and workers apply
OF_RESOURCE = ((b"x-content-type-options", b"nosniff"), (b"cross-origin-resource-policy", b"same-origin"))
"""Security fields of the other files. Policies of documents have no effect there, and are a third of the first view."""


def routes(files: Mapping[str, bytes], prefix: str = "") -> list[Route]:
    """Return the routes of the page's files: those of `OF_ROOT` at the root, the others under `/page/`.

    The content type follows from the name (`KINDS`). The page's links are relative, so the prefix without a trailing
    slash redirects to the prefix with it.
    """
    found = [
        Route(
            method="GET",
            pattern=path_of(name),
            access=DashboardAccess.SIGN_IN if name in OF_SIGN_IN else DashboardAccess.OWNER,
            handler=_asset(name, body).answer,
        )
        for name, body in files.items()
    ]
    if prefix:
        found.append(
            Route(method="GET", pattern=prefix, access=DashboardAccess.OWNER, handler=_redirect_handler(f"{prefix}/"))
        )
    return found


def path_of(name: str) -> str:
    """Return the path of a file of the page."""
    return OF_ROOT.get(name, f"/page/{name}")


def _asset(name: str, body: bytes) -> StaticAsset:
    return StaticAsset(KINDS[name.rpartition(".")[2]], body, () if name in OF_DOCUMENTS else OF_RESOURCE)


def command_sentences() -> bytes:
    """Return the module `command_sentences.js`: the sentences of the Device Control table, as calls of `t`.

    The key is the path, or method and path for a row that is not the last one of its path.
    """
    last = {row.path: row for row in DEVICE_CONTROL.values()}
    lines = [
        f'  "{row.path if last[row.path] is row else f"{row.method} {row.path}"}": '
        f"[{', '.join(f't({strict_json.dumps(words)})' for words in row.sentence)}],\n"
        for row in DEVICE_CONTROL.values()
    ]
    text = f'import {{ t }} from "./i18n.js";\n\nexport const SENTENCES = {{\n  __proto__: null,\n{"".join(lines)}}};\n'
    return text.encode("utf-8")


def _redirect_handler(path: str) -> Callable[[Request], Response]:
    fields = Headers(((b"location", path.encode("ascii")),))
    return lambda request: Response(308, fields)
