"""Routes `/openapi.json`, which describes the routes of a server, and `/docs`, a page that displays it.

The document is built when it is first requested, and kept as bytes (decision 146).
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import TYPE_CHECKING

from svc_proto.engine.message import Request, Response
from svc_proto.engine.page_language import find_language
from svc_proto.engine.router import Route, Router
from svc_proto.engine.static_asset import StaticAsset
from svc_proto.version import VERSION

if TYPE_CHECKING:
    from svc_proto.openapi.operation_doc import ApiDoc

__all__ = ["OpenApiRoutes"]


class OpenApiRoutes:
    """The two routes of a service.

    The first request for `/openapi.json` loads `manual` and all routes of `router`.
    """

    def __init__(
        self, manual: Callable[[], ApiDoc], router: Callable[[], Router], prefix: str = "", version: str = VERSION
    ) -> None:
        self._manual = manual
        self._router = router
        self._prefix = prefix
        self._version = version
        self._written: StaticAsset | None = None

    def routes(self, access: Enum) -> list[Route]:
        """Return the routes `/openapi.json` and `/docs`, both with the access policy `access`."""
        return [
            Route(method="GET", pattern="/openapi.json", access=access, handler=self._document, body_limit=0),
            Route(method="GET", pattern="/docs", access=access, handler=self._page, body_limit=0),
        ]

    def _document(self, request: Request) -> Response:
        if self._written is None:
            from svc_proto.openapi.document import document_json  # noqa: PLC0415, RUF100 - rarely used

            body = document_json(self._router().routes, self._manual(), self._prefix, self._version)
            self._written = StaticAsset(b"application/json", body)
        return self._written.answer(request)

    def _page(self, request: Request) -> Response:
        from svc_proto.openapi.viewer_page import PAGES  # noqa: PLC0415, RUF100 - rarely used

        return PAGES[find_language(request.headers)].answer(request)
