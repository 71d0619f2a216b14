"""Set-up of the relay server: reads its settings, opens its resources and builds its program."""

import os
import sys
from collections.abc import Callable, Mapping
from functools import partial
from importlib.util import find_spec
from pathlib import Path

from attrs import evolve

from runtimes.files.installed_version import installed_version
from runtimes.files.temporary_folder import temporary_folder
from runtimes.host.file_descriptors import limits_per_server
from runtimes.host.host import Program, Services
from runtimes.host.logs import setup_logging
from runtimes.net.listener import Listener
from runtimes.net.peer_user import can_look_up_users
from runtimes.service_home.server_registry import HomeClaim
from runtimes.store.store_factory import store_files
from runtimes.store.store_service import Store
from runtimes.tls.contexts import PinnedTrust
from servers import launch
from servers.config_report import log_config_problems
from servers.supervision import inherited_address
from svc_proto import relay_config
from svc_proto.engine.core import Engine
from svc_proto.machines.auth_rate_limiter import LOOPBACK
from svc_proto.machines.pairing_api_keys import PairingApiKeys
from svc_proto.relay.service import Relay
from svc_proto.settings import S3Bucket

__all__ = ["announce_relay", "read_relay_config", "relay_program"]

# for the TUI channel, unless SVC_TUI_COMMAND names another program
GATEWAY = (sys.executable, "-P", "-m", "clients.gateway")
STORES = ("RELAY_SESSIONS_FILE", "SVC_DATABASE_URL")  # variables that name the store, see `open_home_store`


def read_relay_config(env: Mapping[str, str], options: Mapping[str, object]) -> relay_config.RelayConfig:
    """Return the relay's settings, including `.env`. Raises `CannotStartError` with exit code 2."""
    options = {**options, **inherited_address(env, "relay")}
    fixed = {name: env[name] for name in relay_config.PAIR_VARIABLES if env.get(name, "").strip()}
    env = launch.read_environment(env)
    try:
        parsed = relay_config.parse_relay_config(
            env,
            options,
            home=str(Path("~/.svc").expanduser()),
            path_separator=os.pathsep,
            temp_dir=temporary_folder(),
            user_home=str(Path.home()),
            store_files=[file for name in STORES for file in store_files(env.get(name) or "")],
        )
        config = evolve(parsed, version=installed_version(), pair_environment=fixed)
    except relay_config.ConfigError as error:
        raise launch.CannotStartError(str(error), code=2) from error
    if isinstance(config.media_store, S3Bucket) and find_spec("aws_request_signer") is None:
        raise launch.CannotStartError("SVC_MEDIA_URL with s3:// needs more: pip install 'svc-relay[s3]'", code=2)
    return config


def relay_program(
    config: relay_config.RelayConfig,
    *,
    listener: Listener | None = None,
    inner: Listener | None = None,
    store: Store | None = None,
    on_ready: Callable[[relay_config.RelayConfig], None] | None = None,
    servers: int = 1,
    keys: PairingApiKeys | None = None,
    claim: HomeClaim | None = None,
    announces: bool = True,
) -> Program:
    """Build the relay program with opened resources. Raises `CannotStartError`: code 1 for TLS files, else 2.

    Without `store`, the store of the environment is opened. `inner` is a second listener, for programs on this host.
    Without `claim`, the home is claimed here, unless the configuration shares the home. `on_ready` gets the
    configuration with the bound port, in place of `announce_relay`. `servers` is the number of servers in this
    process. `keys` are those that the API in this process accepts.
    """
    logger = setup_logging(int(config.log_level), as_json=config.log_json)
    bind_it = partial(launch.bind_server, config, "relay")
    place = launch.open_resources(
        config,
        "relay",
        bind_it,
        claimed=claim,
        listener=listener,
        inner=inner,
        store=store,
        claims=not config.shares_home,
    )
    if config.local_trust is relay_config.LocalTrustPolicy.USER and not can_look_up_users():
        logger.warning("RELAY_LOCAL_TRUST=user counts as address: this kernel does not name the users of sockets")
    plain = place.listener.tls is None and place.listener.address.host not in LOOPBACK
    bound = evolve(config, port=place.listener.address.port, tui_command=config.tui_command or GATEWAY)
    relay = Relay(bound, limits=limits_per_server(servers), keys=keys)
    engine = Engine(relay, entropy=os.urandom, log_level=bound.log_level)

    def ready() -> None:
        if plain and config.begins:
            logger.warning("serving without TLS: use it only on a network you trust")
        agent_file = () if claim is not None or not config.begins else (config.config_path,)  # else the API reports it
        log_config_problems(logger, *agent_file, config.voice.output_path, config.voice.realtime_path)
        launch.publish_running_server(place.claim, config, place.listener, place.inner, brand=config.brand.name)
        if on_ready is not None:
            on_ready(bound)
        elif announces:
            announce_relay(bound)

    rooms = tuple(Path(folder) for folder in config.voice.folders)
    spool = place.home / "spool"
    if isinstance(config.media_store, str):
        spool = Path(config.media_store)
        rooms += (spool,)
    services = Services(
        state=place.home,
        extra_state_folders=rooms,
        spool=spool,
        store=place.store,
        logger=logger,
        client_tls=_trust(bound),
    )
    return Program(
        core=engine,
        listeners=place.listeners,
        asks_for_users=relay_config.asks_for_users(bound.local_trust),
        services=services,
        on_ready=ready,
        on_exit=launch.print_exit_reason,
        claim=place.claim,
    )


def announce_relay(config: relay_config.RelayConfig) -> None:
    """Print on standard error the address of the relay."""
    scheme = "https" if config.tls else "http"
    print(
        f"relay: {scheme}://{launch.format_authority(config.host, config.port)} (WebSocket at /ws)",
        file=sys.stderr,
        flush=True,
    )


def _trust(config: relay_config.RelayConfig) -> PinnedTrust | None:
    """Return the trust in the API's pinned key, which may belong to a self-signed certificate; None without a pin."""
    if config.webapi_pin is None:
        return None
    trust = PinnedTrust()
    trust.expect(config.webapi.host, config.webapi.port, config.webapi_pin)
    return trust
