"""Set-up of the gateway: reads its settings from the environment, and builds its program."""

import os
from collections.abc import Mapping

from clients.gateway.api_connection import GatewayApiSettings
from clients.gateway.service import Gateway
from runtimes.files.installed_version import installed_version
from runtimes.host.host import Program, Services
from runtimes.host.logs import setup_logging
from runtimes.service_home.home import service_home_path
from runtimes.service_home.server_registry import find_running_server
from runtimes.tls.contexts import PinnedTrust
from servers.launch import CannotStartError, print_exit_reason
from svc_proto.basics.certificate_pins import is_pin
from svc_proto.engine.core import Engine
from svc_proto.wire.urls import has_scheme, parse_url

__all__ = ["gateway_program", "read_settings"]


def read_settings(env: Mapping[str, str]) -> GatewayApiSettings:
    """Return the gateway's settings from environment variables and the running API of this host.

    Raises `CannotStartError`, exit code 2, for an invalid URL or pin.
    """
    home = service_home_path(env)
    runs = find_running_server(home, "api")
    url = (env.get("RELAY_WEBAPI_URL") or (runs and runs.inside) or "http://localhost:8642").rstrip("/")
    if not has_scheme(url, "http", "https"):
        raise CannotStartError("RELAY_WEBAPI_URL must be an http:// or https:// URL", code=2)
    pin = env.get("RELAY_WEBAPI_PIN") or None
    if pin is not None and not is_pin(pin):
        raise CannotStartError("RELAY_WEBAPI_PIN must be sha256/ and 44 characters of Base64", code=2)
    config_path = env.get("SVC_CONFIG") or f"{home}/config.yaml"
    files = (config_path, f"{home}") if runs is not None and url == runs.inside else None
    return GatewayApiSettings(
        url=url,
        key=env.get("API_SERVER_KEY") or "",
        files=files,
        principal=env.get("SVC_AGENT_PRINCIPAL") or "",
        withheld=tuple(filter(None, (env.get("SVC_AGENT_WITHHELD") or "").split(","))),
        pin=pin,
        version=installed_version(),
    )


def gateway_program(settings: GatewayApiSettings) -> Program:
    """Build the gateway's program. Its log goes to standard error."""
    resume = os.environ.get("SVC_TUI_RESUME") or os.environ.get("HERMES_TUI_RESUME") or ""
    core = Engine(Gateway(settings, resume=resume), entropy=os.urandom)
    services = Services(logger=setup_logging(30, name="svc.gateway"), client_tls=_trust(settings))
    return Program(core=core, stdio=True, services=services, on_exit=print_exit_reason)


def _trust(settings: GatewayApiSettings) -> PinnedTrust | None:
    if settings.pin is None:
        return None
    where, trust = parse_url(settings.url), PinnedTrust()
    trust.expect(where.host, where.port, settings.pin)
    return trust
