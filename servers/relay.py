"""The relay server: `python -m servers.relay`."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import click

from runtimes.host import Program, Services
from runtimes.listen import BindError, Listener, bind
from runtimes.logs import setup
from runtimes.store import Store, StoreError, open_store
from runtimes.tls import TlsFileError, server_context
from servers.launch import CannotStartError, launch, private_home, relay_options
from svc_proto.config import ConfigError, RelayConfig, relay_config
from svc_proto.engine.core import Engine
from svc_proto.relay.service import Relay

__all__ = ["main", "read_config", "relay_program"]

EXAMPLES = """
\b
Examples:
  python -m servers.relay                              listen on 0.0.0.0:8767
  python -m servers.relay --host 127.0.0.1 --port 0    on a free port, this host only
  python -m servers.relay --runtime curio              on another event loop
  RELAY_SSL_CERT=cert.pem RELAY_SSL_KEY=key.pem python -m servers.relay
  SVC_BRAND=hermes python -m servers.relay             speak the names that older clients know

\b
Every option has an environment variable (RELAY_HOST, RELAY_PORT, …); the option wins.
State is kept under ~/.svc, or SVC_HOME.
"""


@click.command(epilog=EXAMPLES, context_settings={"help_option_names": ["-h", "--help"]})
@relay_options
def main(runtime: str, **options: object) -> None:
    """Run the relay: pairing, sessions and the bridge to phones, over HTTP and WebSocket on one port."""
    launch(lambda: [relay_program(read_config(os.environ, options))], runtime)


def read_config(env: Mapping[str, str], options: Mapping[str, object]) -> RelayConfig:
    """The relay's settings. Raises `CannotStartError` with exit code 2."""
    try:
        return relay_config(env, options, home=str(Path("~/.svc").expanduser()), path_separator=os.pathsep)
    except ConfigError as error:
        raise CannotStartError(str(error), code=2) from error


def relay_program(
    config: RelayConfig, *, listener: Listener | None = None, on_ready: Callable[[RelayConfig], None] | None = None
) -> Program:
    """Everything a relay needs, opened and bound. Raises `CannotStartError`: code 1 for TLS files, else 2."""
    logger = setup(int(config.log_level))
    home = private_home(config.home)
    store = _store(home)
    if listener is None:
        listener = _listener(config, logger)
    bound = _with_port(config, listener.address.port)
    engine = Engine(Relay(bound), entropy=os.urandom, log_level=bound.log_level)

    def ready() -> None:
        (on_ready or _announce)(bound)

    services = Services(state=home, spool=home / "spool", store=store, logger=logger)
    return Program(core=engine, listeners=[listener], services=services, on_ready=ready)


def _listener(config: RelayConfig, logger: logging.Logger) -> Listener:
    try:
        tls = server_context(config.ssl_cert, config.ssl_key) if config.ssl_cert is not None else None
    except TlsFileError as error:
        raise CannotStartError(str(error), code=1) from error
    try:
        listener = bind(config.host, config.port, tls=tls)
    except BindError as error:
        raise CannotStartError(str(error), code=2) from error
    if tls is None:
        logger.warning("serving without TLS: use it only on a network you trust")
    return listener


def _store(home: Path) -> Store:
    where = os.environ.get("RELAY_SESSIONS_FILE")
    try:
        if where is not None:
            return open_store(where.strip() or "memory:")
        return open_store(os.environ.get("SVC_DATABASE_URL") or home / "svc.db")
    except StoreError as error:
        raise CannotStartError(str(error), code=2) from error


def _with_port(config: RelayConfig, port: int) -> RelayConfig:
    from attrs import evolve

    return evolve(config, port=port)


def _announce(config: RelayConfig) -> None:
    scheme = "https" if config.tls else "http"
    host = f"[{config.host}]" if ":" in config.host else config.host
    print(f"relay: {scheme}://{host}:{config.port} (WebSocket at /ws)", file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
