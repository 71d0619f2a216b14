"""Settings of the servers that run on a service home, which take precedence over configured settings."""

from pathlib import Path

from attrs import evolve

from runtimes.service_home.server_registry import find_running_server
from svc_proto.basics.brand import BRANDS
from svc_proto.relay_config import RelayConfig

__all__ = ["with_running_settings"]


def with_running_settings(config: RelayConfig, *, branded: bool = False) -> RelayConfig:
    """Return `config` with the addresses, paths and brand of the running relay, and the addresses of the running API.

    Both servers are those of the home in `config`. Members of a server that does not run stay as configured. `branded`
    keeps the configured brand. `key_in_environment` becomes false if the running API does not have its key from the
    environment.
    """
    home = Path(config.home).expanduser().absolute()
    relay, api = find_running_server(home, "relay"), find_running_server(home, "api")
    if relay is not None:
        config = evolve(
            config,
            host=relay.host,
            port=relay.port,
            ssl_cert=relay.certificate,
            ssl_key=relay.certificate_key,
            root_path=relay.root_path,
            inside=relay.inside,
            brand=config.brand if branded else BRANDS.get(relay.brand, config.brand),
        )
    if api is None:
        return config
    named = config.key_in_environment and api.key == "environment"
    return evolve(config, webapi_url=api.url, webapi_inside=api.inside, key_in_environment=named)
