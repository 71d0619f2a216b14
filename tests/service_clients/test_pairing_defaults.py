import pytest

from svc_proto.machines.pairing_codes import PairingMeta
from svc_proto.relay_config import RelayConfig
from svc_proto.service_clients.pairing_defaults import add_default_terms, read_pairing_defaults
from tests.cli.harness import OneShotHarness


def defaults(dotenv: bytes | None, environment: dict[str, str]) -> tuple[str | None, int | None]:
    """Return scope and lifetime of a host that started with `chat` and an hour."""
    config = RelayConfig(home="/h", pair_environment=environment, pair_scope="chat", pair_ttl=3600)
    files = {} if dotenv is None else {"/h/.env": dotenv}
    found = OneShotHarness(lambda engine: read_pairing_defaults(engine, config), files=files).run()
    assert isinstance(found, RelayConfig)
    return found.pair_scope, found.pair_ttl


@pytest.mark.parametrize(
    ("dotenv", "environment", "expected"),
    [
        (None, {}, ("chat", 3600)),
        (b"", {}, (None, None)),
        (b"SVC_PAIR_SCOPE=phone\nSVC_PAIR_TTL=0\n", {}, ("phone", 0)),
        (b"SVC_PAIR_SCOPE=phone\n", {"SVC_PAIR_SCOPE": "chat"}, ("chat", None)),
    ],
)
def test_current_defaults(
    dotenv: bytes | None, environment: dict[str, str], expected: tuple[str | None, int | None]
) -> None:
    assert defaults(dotenv, environment) == expected


def test_terms_of_a_code_precede_the_defaults() -> None:
    config = RelayConfig(pair_scope="phone", pair_ttl=3600)
    added = add_default_terms(PairingMeta(), config)
    assert (added.grants, added.ttl_seconds) == ({"terminal": None, "tui": None}, 3600)
    own = PairingMeta(grants={}, ttl_seconds=0)
    assert add_default_terms(own, config) == own
    program = PairingMeta(audience="mcp")
    assert add_default_terms(program, config) == program
    assert add_default_terms(PairingMeta(), RelayConfig()) == PairingMeta()
