"""Changes of the configuration file: one at a time, atomic, with comments and order preserved."""

from collections.abc import Callable, Mapping

from svc_proto.api.agent_settings import file_base_url, is_usable_base_url, origin_of, sends_key_to_main_host
from svc_proto.api.config import ApiConfig
from svc_proto.api.errors import invalid_request
from svc_proto.basics.errors import Refused
from svc_proto.basics.validate import single_line, text
from svc_proto.commands import Level
from svc_proto.engine.core import Engine
from svc_proto.engine.files import update_yaml
from svc_proto.engine.flow import Flow
from svc_proto.engine.sync import Lock
from svc_proto.schema.json_object import JsonObject

__all__ = ["PROMPT", "ModelConfigFile", "parse_change", "parse_prompt"]

PROMPT = "system_prompt"
FIELDS = ("model", "provider", "base_url")  # wire api 8.1
MAX_TEXT = 256  # characters of each field
MAX_PROMPT = 20_000  # characters of the system prompt


def parse_change(body: Mapping[str, object]) -> dict[str, str]:
    """Return the given members `model`, `provider` and `base_url` of a body, the address without a slash at its end.

    Raises `Refused` 400 for another member, a value that is no single line, and an unusable address.
    """
    change: dict[str, str] = {}
    for name, value in body.items():
        if name not in FIELDS:
            raise invalid_request(f"these fields can be changed: {', '.join(FIELDS)}")
        change[name] = single_line(value, name, MAX_TEXT)
    url = change.get("base_url", "").rstrip("/")
    if url and not is_usable_base_url(url):
        raise invalid_request("base_url must be an http:// or https:// URL with a host, without a password or a query")
    if "base_url" in change:
        change["base_url"] = url
    return change


def parse_prompt(value: object, name: str) -> dict[str, str]:
    """Return the change of the configuration file that sets the system prompt to `value`, stripped.

    Raises `Refused` 400 with the member's `name` if the value is no text or is too long.
    """
    found = text(value, name)
    if len(found) > MAX_PROMPT:
        raise invalid_request(f"{name} may have {MAX_PROMPT:,} characters")
    return {PROMPT: found.strip()}


class ModelConfigFile:
    """Writer of one server's configuration file."""

    def __init__(self, engine: Engine, config: ApiConfig) -> None:
        self._engine = engine
        self._config = config
        self._changing = Lock(engine)

    def change_model(self, change: Mapping[str, str]) -> Flow[None]:
        """Set members of `model`, and `agent.system_prompt`.

        Raises `Refused` 400 for a change that would send a key to another host, 500 if the file cannot be changed.
        """
        yield from self._change(lambda found: _edits(self._config, found, change), sorted(change))

    def switch_server(self, name: str, *, enabled: bool) -> Flow[None]:
        """Set whether the agent uses an MCP server of the file. Raises `Refused` 500 if the file cannot be changed."""
        edits = {"mcp_servers": {name: {"enabled": enabled}}}
        yield from self._change(lambda found: edits, ["mcp_servers"])

    def _change(self, edits: Callable[[object], Mapping[str, object]], fields: list[str]) -> Flow[None]:
        yield from self._changing.acquire()
        try:
            yield from self._write(edits, fields)
        finally:
            self._changing.release()

    def _write(self, edits: Callable[[object], Mapping[str, object]], fields: list[str]) -> Flow[None]:
        engine, config = self._engine, self._config
        path = config.config_path
        name = path.removeprefix(f"{config.home}/")
        if name == path:
            raise _failed("is not in the service's home folder: edit it by hand")
        yield from update_yaml(engine, path, edits, _failed, name=name)
        engine.log(Level.INFO, "configuration changed", fields=fields)


def _edits(config: ApiConfig, found: object, change: Mapping[str, str]) -> dict[str, object]:
    """Return the edits of the file for a change; a plain `model` name stays one if only the name changes (wire api 9).

    Raises `Refused` if the file is not valid YAML, or if the change would send a key to another host.
    """
    there = JsonObject.of_or_none(found)
    if there is None:
        raise _failed("is not valid YAML: mend it by hand")
    before, after = file_base_url(there), change.get("base_url", "")
    if after and origin_of(after) != origin_of(before) and sends_key_to_main_host(config, there):
        # A client of the API must not obtain the model's key by naming a host of its own.
        raise invalid_request("base_url cannot move to another host while a model key is set: edit the file by hand")
    plain, model = there.string("model"), {name: value for name, value in change.items() if name != PROMPT}
    edits: dict[str, object] = {"agent": {PROMPT: change[PROMPT]}} if PROMPT in change else {}
    if list(model) == ["model"] and plain is not None:
        edits["model"] = model["model"]
    elif model:
        members: dict[str, object] = {} if plain is None else {"default": plain}
        members.update({"default" if name == "model" else name: value for name, value in model.items()})
        edits["model"] = members
    return edits


def _failed(problem: str) -> Refused:
    return Refused(500, "config_write_failed", f"the configuration file {problem}")
