"""Set-up of the API server: reads its settings, opens its resources and builds its program."""

import os
import socket
import sys
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

from attrs import evolve

from runtimes.failures import HostError
from runtimes.files.env_file import EnvFileError, read_env_file
from runtimes.files.installed_version import installed_version
from runtimes.host.compute import load_yaml
from runtimes.host.file_descriptors import limits_per_server
from runtimes.host.host import Program, Services
from runtimes.host.logs import LogMessage, setup_logging
from runtimes.net.listener import Listener
from runtimes.sentences import HassilParser
from runtimes.service_home.home import ENV_FILE
from runtimes.service_home.server_registry import HomeClaim, find_running_server
from runtimes.store.store_service import Store
from servers import launch
from servers.config_report import log_config_problems
from servers.env_file import create_api_key
from servers.supervision import inherited_address
from svc_proto.api.agent_settings import build_agent_settings, file_base_url
from svc_proto.api.config import ApiConfig, model_url_source, parse_api_config
from svc_proto.api.gateway.attachment_files import SPOOL as ATTACHMENTS
from svc_proto.api.host_settings import HOST_SETTINGS
from svc_proto.api.service import LIMITS, Api
from svc_proto.basics.dotenv import select_own_settings
from svc_proto.engine.core import Engine
from svc_proto.machines.auth_rate_limiter import LOOPBACK
from svc_proto.machines.pairing_api_keys import PairingApiKeys
from svc_proto.relay_config import asks_for_users
from svc_proto.service_clients.local_api import yaml_variables
from svc_proto.settings import ConfigError

__all__ = [
    "announce_api",
    "api_program",
    "api_programs",
    "configured_model",
    "read_api_config",
    "announce_disabled",
]


def api_programs(options: Mapping[str, object]) -> Sequence[Program]:
    """Build the API server, alone in a list; an empty list if it is switched off. Raises `CannotStartError`.

    It uses the running relay of its home, if there is one and no other relay is configured.
    """
    config = read_api_config(os.environ, options)
    if not config.enabled:
        announce_disabled()
        return []
    relay = find_running_server(Path(config.home).expanduser().absolute(), "relay")
    if relay is not None and config.relay_url == ApiConfig().relay_url:
        config = evolve(config, relay_url=relay.inside)
    return [api_program(config)]


def read_api_config(env: Mapping[str, str], options: Mapping[str, object], *, beside: str | None = None) -> ApiConfig:
    """Return the API's settings from options, environment, `.env` and the configuration file.

    Raises `CannotStartError` with exit code 2. An unreadable file prevents the start: it may have the key, and without
    a key the API is open to all clients. `beside` is the address to listen on if none is configured; beyond loopback,
    an API key is then created if there is none.
    """
    home = str(Path("~/.svc").expanduser())
    given = inherited_address(env, "api")
    silent = bool(given) or options.get("host") is None
    options = {**options, **given}
    try:
        first = parse_api_config(env, options, home=home)
        files = {**_yaml_file(first.config_path), **_env_file(f"{first.home}/.env")}
        found = {**files, **{name: value for name, value in env.items() if value.strip()}}
        if given:
            found.pop("API_SERVER_HOST", None)
        if beside is not None and first.enabled and silent:
            found = _beside(str(given.get("host", beside)), found, first.home)
        named = bool(env.get("API_SERVER_KEY", "").strip())
        fixed = {
            each.variable: value for each in HOST_SETTINGS.values() if (value := env.get(each.variable, "").strip())
        }
        config = evolve(
            parse_api_config(found, options, home=first.home),
            key_in_environment=named,
            host_environment=fixed,
            model_base_url_source=model_url_source(env),
            version=installed_version(),
        )
        _check_model(config)
        return config
    except ConfigError as error:
        raise launch.CannotStartError(str(error), code=2) from error


def _check_model(config: ApiConfig) -> None:
    """Raise `ConfigError` for `SVC_MODEL` without an address: the built-in agent would answer in its place."""
    if config.model and not config.model_base_url and not file_base_url(_settings(config)):
        raise ConfigError(
            "SVC_MODEL names a model without an address: add SVC_MODEL_BASE_URL, such as http://127.0.0.1:11434/v1 "
            "for Ollama, or run svc model"
        )


def api_program(
    config: ApiConfig,
    *,
    listener: Listener | None = None,
    inner: Listener | None = None,
    store: Store | None = None,
    servers: int = 1,
    keys: PairingApiKeys | None = None,
    claim: HomeClaim | None = None,
    announces: bool = True,
) -> Program:
    """Build the API program with opened resources. Raises `CannotStartError`: code 1 for TLS files, else 2.

    Without `store`, the store of the environment is opened. `inner` is a second listener, for programs on this host.
    `keys` are those that a relay in this process gives to devices. Without `claim`, the home is claimed here.
    """
    logger = setup_logging(int(config.log_level), as_json=config.log_json)
    bind_it = partial(launch.bind_server, config, "api")
    place = launch.open_resources(config, "api", bind_it, claimed=claim, listener=listener, inner=inner, store=store)
    path = Path(config.config_path).expanduser().absolute()
    names = (socket.gethostname().lower(), config.host.lower())
    bound = evolve(config, port=place.listener.address.port, home=str(place.home), config_path=str(path), names=names)
    limits = limits_per_server(servers, LIMITS)
    service = Api(bound, limits=limits, keys=keys, sentences=HassilParser())
    core = Engine(service, entropy=os.urandom, log_level=bound.log_level)
    public = place.listener.address.host not in LOOPBACK

    def ready() -> None:
        if public and not config.key:
            logger.warning("serving other hosts without a key: every host that reaches this port can use the agent")
        if public and place.listener.tls is None:
            logger.warning("serving other hosts without TLS: use it only on a network you trust, or behind a proxy")
        log_config_problems(logger, str(path))
        model, (model_url, model_source) = configured_model(bound), _model_address(bound)
        key = _key_place(bound)
        model_file = "" if bound.model_base_url or bound.model else bound.config_path
        named = {"key": key, "model": model, "model_file": model_file}
        named |= {"model_url": model_url, "model_source": model_source}
        launch.publish_running_server(place.claim, config, place.listener, place.inner, **named)
        where = {"url": bound.model_base_url} if bound.model_base_url else {}
        logger.info(LogMessage("model", {"name": model, **where}))
        if announces:
            announce_api(bound)

    services = Services(state=place.home, spool=place.home / ATTACHMENTS, store=place.store, logger=logger)
    return Program(
        core=core,
        listeners=place.listeners,
        asks_for_users=asks_for_users(bound.local_trust),
        services=services,
        on_ready=ready,
        on_exit=launch.print_exit_reason,
        claim=place.claim,
    )


def announce_api(config: ApiConfig) -> None:
    """Print on standard error the address of the API."""
    key = "with a key" if config.key else "no key"
    scheme = "https" if config.tls else "http"
    print(f"api: {scheme}://{launch.format_authority(config.host, config.port)} ({key})", file=sys.stderr, flush=True)


def announce_disabled() -> None:
    """Print on standard error the reason why there is no API."""
    print("api: not started, because API_SERVER_ENABLED is off", file=sys.stderr, flush=True)


def _beside(host: str, found: Mapping[str, str], home: str) -> dict[str, str]:
    if "API_SERVER_HOST" in found:
        return dict(found)
    more = {"API_SERVER_HOST": host}
    if host not in LOOPBACK and "API_SERVER_KEY" not in found:
        more["API_SERVER_KEY"] = create_api_key(launch.private_home(home))
    return {**found, **more}


def _yaml_file(path: str) -> dict[str, str]:
    text = _file(path)
    if text is None:
        return {}
    try:
        return yaml_variables(load_yaml(text))
    except HostError as error:
        raise launch.CannotStartError(f"cannot use {path}: {error}", code=2) from error


def _env_file(path: str) -> dict[str, str]:
    try:
        return select_own_settings(read_env_file(Path(path).expanduser()))
    except EnvFileError as error:
        raise launch.CannotStartError(str(error), code=2) from error


def _key_place(config: ApiConfig) -> str:
    """Return the place of the API's key: "environment" or a path; empty if it has none."""
    if not config.key:
        return ""
    if config.key_in_environment:
        return "environment"
    path = f"{config.home}/{ENV_FILE}"
    return path if "API_SERVER_KEY" in _env_file(path) else config.config_path


def configured_model(config: ApiConfig) -> str:
    """Return the name of the model that is configured at the start, or "built-in"; turns read the file again."""
    endpoint = build_agent_settings(config, _settings(config)).endpoint
    return "built-in" if endpoint is None else endpoint.model


def _model_address(config: ApiConfig) -> tuple[str, str]:
    """Return the address of the model's server at the start, and the setting that it comes from.

    Both are empty for the built-in agent.
    """
    endpoint = build_agent_settings(config, _settings(config)).endpoint
    return ("", "") if endpoint is None else (endpoint.base_url, endpoint.source)


def _settings(config: ApiConfig) -> Mapping[str, object]:
    """Return the configuration file's contents; empty if it cannot be parsed, which each turn reports."""
    text = _file(config.config_path)
    try:
        return {} if text is None else load_yaml(text)
    except HostError:
        return {}


def _file(path: str) -> str | None:
    try:
        return Path(path).expanduser().read_text("utf-8")
    except FileNotFoundError:
        return None
    except OSError as error:
        raise launch.CannotStartError(f"cannot read {path}: {error.strerror}", code=2) from error
    except UnicodeDecodeError as error:
        raise launch.CannotStartError(f"cannot read {path}: not UTF-8", code=2) from error
