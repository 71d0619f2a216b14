"""Default grants and lifetime of new pairing codes, from the environment, else from `.env` (`PAIR_VARIABLES`)."""

from attrs import evolve

from svc_proto.basics.errors import Refused
from svc_proto.engine.core import Engine
from svc_proto.engine.files import MISSING_FILE_KINDS, read_env_file
from svc_proto.engine.flow import Flow
from svc_proto.facts import Failure
from svc_proto.machines.pairing_codes import PairingMeta
from svc_proto.relay_config import RelayConfig, parse_pair_scope, parse_pair_ttl
from svc_proto.settings import ConfigError, SettingsSource

__all__ = ["add_default_terms", "default_terms", "read_pairing_defaults"]


def read_pairing_defaults(engine: Engine, config: RelayConfig) -> Flow[RelayConfig]:
    """Return the configuration with the defaults of the environment, else those that `.env` has now.

    A missing file changes nothing. Raises `Refused` 409 if the file cannot be read, or has an invalid value.
    """
    dotenv = yield from read_env_file(engine, f"{config.home}/.env")
    if isinstance(dotenv, Failure):
        if dotenv.kind in MISSING_FILE_KINDS:
            return config
        raise _not_usable(f"it cannot be read: {dotenv.detail or dotenv.kind.value}")
    source = SettingsSource({**dotenv, **config.pair_environment}, {})
    try:
        return evolve(config, pair_scope=parse_pair_scope(source), pair_ttl=parse_pair_ttl(source))
    except ConfigError as error:
        raise _not_usable(str(error)) from None


def default_terms(config: RelayConfig) -> PairingMeta:
    """Return the terms of a code whose maker names none."""
    return PairingMeta(grants=config.pair_grants, ttl_seconds=config.pair_ttl)


def add_default_terms(meta: PairingMeta, config: RelayConfig) -> PairingMeta:
    """Return the terms of a code, with the default grants and lifetime where it has none.

    Terms with an audience are unchanged: such a code is not for a device.
    """
    if meta.audience:
        return meta
    default = default_terms(config)
    return evolve(
        meta,
        grants=default.grants if meta.grants is None else meta.grants,
        ttl_seconds=default.ttl_seconds if meta.ttl_seconds is None else meta.ttl_seconds,
    )


def _not_usable(problem: str) -> Refused:
    return Refused(409, "invalid", f"The file .env of the service home has to be corrected first: {problem}")
