from svc_proto.machines.bridge_commands import RESPONSE_TIMEOUT
from svc_proto.phone.safety.bounds import (
    DEFAULT_IDLE_MINUTES,
    DEFAULT_TIMEOUT,
    MAX_IDLE_MINUTES,
    MAX_TIMEOUT,
    MIN_IDLE_MINUTES,
    MIN_TIMEOUT,
)


def test_defaults_are_within_the_bounds() -> None:
    assert MIN_IDLE_MINUTES <= DEFAULT_IDLE_MINUTES <= MAX_IDLE_MINUTES
    assert MIN_TIMEOUT <= DEFAULT_TIMEOUT <= MAX_TIMEOUT
    assert DEFAULT_TIMEOUT < RESPONSE_TIMEOUT  # otherwise the caller would time out before a user has answered
