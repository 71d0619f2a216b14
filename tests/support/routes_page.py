"""Generator of docs/reference/routes.md: every route of the three servers, from their OpenAPI documents.

After a change, run `python -m tests.support.routes_page` to write the page again.
"""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from textwrap import fill
from typing import Any

PAGE = Path(__file__).parents[2] / "docs/reference/routes.md"
ABOUT = """# Routes

The routes of each server, generated from its `/openapi.json`, which also describes every type that is named here.
[OpenAPI](../howto/openapi.md) lists the clients that may read that document. Each route refuses malformed requests
(400), requests without sufficient credentials (401, 403) and requests above a rate limit (429). The tables list the
other refusals. `python -m tests.support.routes_page` writes this page, and a test of each server compares it with the
document.

"""
API, RELAY, DASHBOARD = "API, port 8642", "Relay, port 8767", "Dashboard, port 9119"


def assert_shown(name: str, document: Mapping[str, Any]) -> None:
    """Assert that the page contains the current section of a server's document."""
    assert section_of(name, document) in PAGE.read_text(), "python -m tests.support.routes_page"


def section_of(name: str, document: Mapping[str, Any]) -> str:
    rows: dict[str, list[str]] = {}
    listeners: dict[str, None] = {}
    for path, item in document["paths"].items():
        for method, operation in item.items():
            *details, admission = operation["description"].split("\n\n")
            listeners[f"- {admission}"] = None
            cells = (
                f"`{method.upper()} {path}`",
                ". ".join([operation["summary"], *details]),
                "; ".join(_takes(operation)),
                "; ".join(_answers(operation)),
                " ".join(_refusals(operation)),
            )
            rows.setdefault(operation["tags"][0], []).append(f"| {' | '.join(cells)} |")
    head = ("| Route | What it does | Takes | Answers | Its own refusals |", "|---|---|---|---|---|")
    about = [f"## {name}\n", f"{fill(document['info']['description'], 120)}\n", *listeners, ""]
    return "\n".join([*about, *("\n".join([f"### {tag}\n", *head, *told, ""]) for tag, told in rows.items())])


def _takes(operation: Mapping[str, Any]) -> Iterator[str]:
    """Yield the parameters that are not part of the path, as one text, and the types of the body."""
    named = [each["name"] for each in operation.get("parameters", ()) if each["in"] != "path"]
    if named:
        yield f"`{', '.join(named)}`"
    yield from _kinds(operation.get("requestBody", {}))


def _answers(operation: Mapping[str, Any]) -> Iterator[str]:
    for status, answer in operation["responses"].items():
        if status != "default" and not _is_refusal(answer):
            yield from (f"{status} {kind}" for kind in _kinds(answer)) if "content" in answer else [status]


def _refusals(operation: Mapping[str, Any]) -> Iterator[str]:
    for status, answer in operation["responses"].items():
        if status != "default" and _is_refusal(answer):
            yield f"{status}: {answer['description']}"


def _is_refusal(answer: Mapping[str, Any]) -> bool:
    """Report whether a response's description ends with a full stop, which the phrases of HTTP lack."""
    return bool(answer["description"].endswith("."))


def _kinds(content: Mapping[str, Any]) -> Iterator[str]:
    """Yield the types of a body: a schema's name or JSON type, or a media type."""
    for media, told in content.get("content", {}).items():
        shape = told["schema"].get("$ref", "").rpartition("/")[2] or told["schema"].get("type", "JSON")
        yield f"`{shape}`" if media == "application/json" else f"`{media}`"


def _write() -> None:
    from svc_proto.dashboard.config import DashboardConfig
    from svc_proto.dashboard.openapi_operations import build_api_doc
    from svc_proto.dashboard.service import Dashboard
    from svc_proto.openapi.document import build_document
    from tests.api.harness import ApiHarness
    from tests.loops.dashboard_client import FILES
    from tests.relay.routes.voice_harness import VoiceRoutesHarness

    def told(book: Any) -> Any:
        return json.loads(book.request("GET", "/openapi.json").body)

    board: Any = build_document(Dashboard(DashboardConfig(), FILES).router.routes, build_api_doc(FILES, ""), "")
    documents = {API: told(ApiHarness()), RELAY: told(VoiceRoutesHarness()), DASHBOARD: board}
    PAGE.write_text(ABOUT + "\n".join(section_of(name, document) for name, document in documents.items()))


if __name__ == "__main__":
    _write()
