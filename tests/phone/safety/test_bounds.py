from svc_proto.machines.bridge_commands import RESPONSE_TIMEOUT
from svc_proto.phone.safety.bounds import DEFAULT_TIMEOUT


def test_a_confirmation_times_out_before_its_caller() -> None:
    assert DEFAULT_TIMEOUT < RESPONSE_TIMEOUT
