from svc_proto.phone.safety.blocklist import DEFAULT_BLOCKLIST
from svc_proto.phone.safety.settings import ConfirmationPolicy, SafetySettings


def test_defaults_are_restrictive() -> None:
    settings = SafetySettings()
    assert not settings.armed  # wire bridge 5.1: "Default: master off"
    assert settings.answers is ConfirmationPolicy.ASK
    assert not settings.unattended
    assert (settings.idle_minutes, settings.blocklist) == (30, DEFAULT_BLOCKLIST)
