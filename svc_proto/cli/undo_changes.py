"""List and undo what a principal changed at the agent: approvals, settings, notes (`svc undo`)."""

from svc_proto.basics.sanitize import sanitize_line
from svc_proto.cli.errors import CliError
from svc_proto.engine.core import Engine
from svc_proto.engine.flow import Flow
from svc_proto.relay_config import RelayConfig
from svc_proto.schema.json_object import JsonObject
from svc_proto.service_clients.api_client import ApiClient
from svc_proto.service_clients.local_api import find_local_api
from svc_proto.service_clients.service_client import ServiceCallError
from svc_proto.wire.urls import encode_segment

__all__ = ["change_lines", "changes_of", "undo_changes"]

MAX_SHOWN = 100  # characters of a value
NO_API = "the API server does not run on this host, or does not answer: svc up"


def changes_of(engine: Engine, config: RelayConfig, name: str) -> Flow[list[JsonObject]]:
    """Return the changes of a principal, oldest first. Raises `CliError`."""
    return (yield from _ask(engine, config, "GET", f"/api/changes?principal={encode_segment(name)}", None))


def undo_changes(engine: Engine, config: RelayConfig, name: str) -> Flow[list[JsonObject]]:
    """Undo the changes of a principal where possible; return all, newest first, with the results. Raises `CliError`."""
    return (yield from _ask(engine, config, "POST", "/api/changes/undo", {"principal": name}))


def change_lines(changes: list[JsonObject]) -> list[str]:
    """Return a line for each change; after an undo, with its result."""
    return [f"  {_words(change)}{_result(change)}" for change in changes]


def _ask(
    engine: Engine, config: RelayConfig, method: str, path: str, body: dict[str, object] | None
) -> Flow[list[JsonObject]]:
    url = config.webapi_inside
    if url is None:
        raise CliError(NO_API)
    key = (yield from find_local_api(engine, config)).key
    try:
        found = yield from ApiClient("the API server", url, key).json(engine, method, path, body or b"")
    except ServiceCallError as error:
        raise CliError(f"the API server refuses: {error.server_message or error.brief}") from None
    return found.objects("changes")


def _words(change: JsonObject) -> str:
    target, before, after = (_shown(change.text(name)) for name in ("target", "before", "after"))
    match change.text("kind"):
        case "approval":
            return f"approval  {after}"
        case "setting":
            return f"setting   {target}: {before or '(none)'} -> {after or '(none)'}"
        case _:
            return f"note      {target}: {f'{before} -> ' if before else ''}{after or '(removed)'}"


def _result(change: JsonObject) -> str:
    match change.get("undone"):
        case True:
            return "  undone"
        case False:
            return f"  not undone: {_shown(change.text('why'))}"
        case _:
            return ""


def _shown(text: str) -> str:
    line = sanitize_line(text)
    return line if len(line) <= MAX_SHOWN else f"{line[: MAX_SHOWN - 1]}…"
