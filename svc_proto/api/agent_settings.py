"""Settings of the agent: the environment, as it was at the start, and the configuration file, read at each use.

A change of the file, or `PATCH /api/config`, takes effect without a restart (wire api 9). The environment has
precedence over the file, except that a file's endpoint gets the file's key if there is one.
"""

from collections.abc import Mapping
from urllib.parse import urlsplit

from attrs import evolve, field, frozen

from svc_proto.agent.interface import ModelEndpoint
from svc_proto.api.config import ApiConfig
from svc_proto.basics.brand import Brand
from svc_proto.commands import Level
from svc_proto.engine.core import Engine
from svc_proto.engine.files import read_yaml
from svc_proto.engine.flow import Flow
from svc_proto.facts import Failure, FailureKind
from svc_proto.schema.json_object import JsonObject, as_text
from svc_proto.service_clients.model_probe import list_models
from svc_proto.settings import http_address

__all__ = [
    "FILE_SOURCE",
    "AgentSettings",
    "AgentSettingsReader",
    "build_agent_settings",
    "file_base_url",
    "find_misspelled",
    "origin_of",
    "product_id",
    "sends_key_to_main_host",
    "is_usable_base_url",
]

QUESTION_PAUSE = 30.0  # s until the next request to a server that lists no model
UNNAMED_MODEL = "default"  # for endpoints that serve one model and ignore the name
FILE_SOURCE = "model.base_url in config.yaml"  # for error texts
ROUTE_SOURCE = "model_routes in config.yaml"
SERVER_DEFAULT = ("", "default", "none")  # names of no personality, wire api 4.1
MODEL_MEMBERS = ("default", "provider", "base_url", "api_mode", "max_tokens", "context_length")
DISPLAY_MEMBERS = ("personality", "agent_name", "assistant_name", "display_name", "name", "skin")
PROMPT_MEMBERS = ("system_prompt", "tone", "style")
MAX_TOKENS = 10_000_000  # tokens of an answer or of a context; a larger number in the file counts as absent
# Members of the configuration file that this system reads (wire api 9, terminal-voice 3.2).
FILE_MEMBERS = (
    "agent",
    "display",
    "fallback_providers",
    "gateway",
    "mcp_servers",
    "model",
    "platforms",
    "realtime_voice",
    "stt",
    "tts",
    "voice_output",
)
SIMILARITY_THRESHOLD = 0.8  # of two names, from 0 to 1: one letter of five may differ, or two of five be swapped
MAX_KEY_CHARS = 40  # names with more characters are not compared


@frozen(kw_only=True)
class AgentSettings:
    """Settings of the agent. `shown` is the part of the file that clients may see."""

    endpoint: ModelEndpoint | None  # None: the built-in agent answers
    name: str  # the server's model name in /v1/models
    personalities: Mapping[str, str]  # whole prompts by name
    personality: str | None = None  # of the server, unless a turn names another
    aliases: Mapping[str, ModelEndpoint] = field(factory=dict)  # `model_routes`
    system: str = ""  # `agent.system_prompt`
    max_tokens: int | None = None  # of one answer
    model: str = ""  # these four as configured, "" if unset
    provider: str = ""
    base_url: str = ""
    api_mode: str = ""
    shown: Mapping[str, object] = field(factory=dict)
    servers: Mapping[str, object] = field(factory=dict, repr=False)  # `mcp_servers` as in the file

    def prompt_for(self, personality: object) -> str:
        """Return the prompt of the named personality (wire api 4.1).

        The names "", `default`, `none` and unknown ones select the server's personality; return "" if it has none.
        """
        name = (as_text(personality) or "").strip()
        if name not in self.personalities or name.lower() in SERVER_DEFAULT:
            name = self.personality or ""
        return self.personalities.get(name, "")


class AgentSettingsReader:
    """Reader of the agent's settings. While file and configuration are unchanged, it returns the same object.

    Settings that name a server but no model are built anew at each read until that server lists a model.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._last: tuple[ApiConfig, str, AgentSettings] | None = None
        self._names: dict[tuple[str, str], str] = {}  # models by endpoint and key, where the settings name none
        self._next_question = 0.0  # monotonic seconds, after a server without an answer

    def read(self, config: ApiConfig) -> Flow[AgentSettings]:
        """Return the current settings, from the environment and the configuration file.

        A missing file counts as empty, and so does a broken one, which is logged as a warning. An invalid model is
        logged as well.
        """
        engine = self._engine
        found = yield from read_yaml(engine, config.config_path)
        if isinstance(found, Failure):
            if found.kind is not FailureKind.NOT_FOUND:
                engine.log(Level.WARNING, "configuration not read", path=config.config_path, problem=found.kind.value)
            found = JsonObject()
        unused = _unused(found)
        if unused is not None:
            engine.log(Level.WARNING, "configuration not used", path=config.config_path, problem=unused)
        last, digest = self._last, repr(found)  # `repr` distinguishes a boolean from a number, `==` does not
        if last is None or last[0] is not config or last[1] != digest:
            settings = yield from self._with_model_name(build_agent_settings(config, found))
            if settings.endpoint is not None and settings.endpoint.model == UNNAMED_MODEL:
                return settings  # the next read requests the list again
            last = self._last = config, digest, settings
        return last[2]

    def _with_model_name(self, settings: AgentSettings) -> Flow[AgentSettings]:
        """Return the settings; if they name a server but no model, with a model that the server lists.

        That is `default` if it is listed, else the first one. If the server lists none, the settings are unchanged, and
        the next request for the list follows after 30 s at the earliest.
        """
        endpoint, engine = settings.endpoint, self._engine
        if endpoint is None or endpoint.model != UNNAMED_MODEL:
            return settings
        place = endpoint.base_url, endpoint.api_key
        if place not in self._names:
            if engine.now.mono < self._next_question:
                return settings
            listing = yield from list_models(engine, *place)
            if not listing.names:
                self._next_question = engine.now.mono + QUESTION_PAUSE
                return settings
            name = self._names[place] = UNNAMED_MODEL if UNNAMED_MODEL in listing.names else listing.names[0]
            engine.log(Level.INFO, "model chosen", name=name, of=len(listing.names), url=endpoint.base_url)
        return evolve(settings, endpoint=evolve(endpoint, model=self._names[place]))


def build_agent_settings(config: ApiConfig, found: Mapping[str, object]) -> AgentSettings:
    """Build the agent's settings from the start-up configuration and the parsed configuration file."""
    found = JsonObject.of(found)
    model, agent, display = _model(found), found.get_object("agent"), found.get_object("display")
    extra = _extra(found)
    endpoint = _endpoint(config, model)
    personalities = _personalities(agent)
    default = display.first_text("personality")
    return AgentSettings(
        endpoint=endpoint,
        name=config.model_name or extra.first_text("model_name") or product_id(config.brand),
        personalities={name: _prompt(value) for name, value in personalities.items()},
        personality=None if default.lower() in SERVER_DEFAULT else default,
        aliases=_aliases(extra.get_object("model_routes"), endpoint),
        system=agent.first_text("system_prompt"),
        max_tokens=config.max_tokens or model.integer("max_tokens", 1, MAX_TOKENS),
        model=config.model or model.first_text("default"),
        provider=model.first_text("provider"),
        base_url=config.model_base_url or file_base_url(found),
        api_mode=model.first_text("api_mode"),
        servers=found.get_object("mcp_servers"),
        shown={
            "agent": {"personalities": personalities},
            "display": {name: text for name in DISPLAY_MEMBERS if (text := display.string(name)) is not None},
            "model": _shown_model(model),
        },
    )


def find_misspelled(found: Mapping[str, object]) -> dict[str, str]:
    """Return the probably misspelled members of the file, each with the known member that it resembles.

    Other programs keep settings in the same file, so a name without a resemblance is no mistake.
    """
    missing = [name for name in FILE_MEMBERS if name not in found]
    strange = [name for name in found if name not in FILE_MEMBERS and len(name) <= MAX_KEY_CHARS]
    if not strange:
        return {}
    from difflib import get_close_matches

    near = {name: get_close_matches(name.lower(), missing, 1, SIMILARITY_THRESHOLD) for name in strange}
    return {name: match[0] for name, match in near.items() if match}


def product_id(brand: Brand) -> str:
    """Return the product id, which names the agent unless it has a configured name."""
    return f"{brand.name}-agent"


def is_usable_base_url(url: str) -> bool:
    """Report whether a URL can be the base URL of an endpoint: http or https with a host; no `@`, query or fragment."""
    return http_address(url) is not None and not urlsplit(url).query and not urlsplit(url).fragment


def file_base_url(found: Mapping[str, object]) -> str:
    """Return the file's `model.base_url` without a slash at its end; "" if it is absent or unusable."""
    url = _model(found).first_text("base_url").rstrip("/")
    return url if is_usable_base_url(url) else ""


def origin_of(url: str) -> tuple[str, str]:
    """Return the scheme and the authority (host and port) of a URL, in lower case."""
    parts = urlsplit(url)
    return parts.scheme, parts.netloc.lower()


def sends_key_to_main_host(config: ApiConfig, found: Mapping[str, object]) -> bool:
    """Report whether a key may go to the file's `model.base_url`, so that a change of that address sends it elsewhere.

    Such a key is the file's own, the environment's without an address there, or that of a route without an address.
    """
    routes = _extra(found).get_object("model_routes")
    borrowing = any(
        routes.get_object(alias).first_text("api_key") and not routes.get_object(alias).first_text("base_url")
        for alias in routes
    )
    return (
        borrowing
        or bool(_model(found).first_text("api_key"))
        or bool(config.model_api_key and not config.model_base_url)
    )


# --- helpers ------------------------------------------------------------------------------------------------------


def _model(found: Mapping[str, object]) -> JsonObject:
    """Return `model` as an object; it may be a plain name (wire api 9). `name` is accepted for `default`."""
    model = found.get("model")
    members = JsonObject.of(model if as_text(model) is None else {"default": model})
    if "default" in members or not members.first_text("name"):
        return members
    return JsonObject({**members, "default": members["name"]})


def _unused(found: Mapping[str, object]) -> str | None:
    """Return what is wrong with the file's `model`, as a text; None if nothing is."""
    model, members = found.get("model"), _model(found)
    if model is not None and as_text(model) is None and JsonObject.of_or_none(model) is None:
        return "model is neither a name nor an object"
    if members.string("default") != members.get("default"):
        return "model.default is no text"
    if members.first_text("base_url") and not file_base_url(found):
        return "model.base_url is no address of an endpoint"
    return None


def _extra(found: Mapping[str, object]) -> JsonObject:
    return JsonObject.of(found).get_object("platforms", "api_server", "extra")


def _endpoint(config: ApiConfig, model: JsonObject) -> ModelEndpoint | None:
    own, file_url = config.model_base_url, file_base_url({"model": model})
    if not (own or file_url):
        return None
    key = config.model_api_key if own else model.first_text("api_key") or config.model_api_key
    if own and not key and origin_of(own) == origin_of(file_url):
        key = model.first_text("api_key")
    name = config.model or model.first_text("default") or UNNAMED_MODEL
    context = config.model_context or model.integer("context_length", 1, MAX_TOKENS)
    source = config.model_base_url_source if own else FILE_SOURCE
    return ModelEndpoint(base_url=own or file_url, model=name, api_key=key, context=context, source=source)


def _aliases(routes: JsonObject, main: ModelEndpoint | None) -> dict[str, ModelEndpoint]:
    """Parse `alias -> {model, base_url?, api_key?, context_length?}`; the address defaults to the main endpoint's.

    The key defaults to the main endpoint's only if scheme, host and port are the same. Entries without a model or a
    usable address are skipped.
    """
    aliases: dict[str, ModelEndpoint] = {}
    for alias in routes:
        wanted = routes.get_object(alias)
        base_url = wanted.first_text("base_url").rstrip("/") or (main.base_url if main is not None else "")
        model = wanted.first_text("model")
        if not model or not is_usable_base_url(base_url):
            continue
        key = wanted.first_text("api_key")
        if not key and main is not None and origin_of(base_url) == origin_of(main.base_url):
            key = main.api_key
        context = wanted.integer("context_length", 1, MAX_TOKENS)
        source = ROUTE_SOURCE if main is None or base_url != main.base_url else main.source
        aliases[alias] = ModelEndpoint(base_url=base_url, model=model, api_key=key, context=context, source=source)
    return aliases


def _personalities(agent: JsonObject) -> dict[str, object]:
    """Return the personalities that have a prompt: text, or an object of texts (wire api 8.1)."""
    listed = agent.get_object("personalities")
    return {
        name: value
        if each is None
        else {part: text for part in PROMPT_MEMBERS if (text := each.string(part)) is not None}
        for name, value, each in ((name, value, JsonObject.of_or_none(value)) for name, value in listed.items())
        if _prompt(value)
    }


def _prompt(value: object) -> str:
    members = JsonObject.of({"system_prompt": value} if as_text(value) is not None else value)
    lines = [members.first_text("system_prompt")]
    lines += [f"{label}: {text}" for label in ("tone", "style") if (text := members.first_text(label))]
    return "\n".join(line for line in lines if line)


def _shown_model(model: JsonObject) -> dict[str, object]:
    shown = {
        name: model[name]
        for name in MODEL_MEMBERS
        if as_text(model.get(name)) is not None or model.integer(name) is not None
    }
    if "base_url" in shown:
        shown["base_url"] = file_base_url({"model": model})  # omits a password in the URL
    return shown
