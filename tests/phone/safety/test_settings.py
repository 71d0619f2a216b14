from __future__ import annotations

from svc_proto.phone.safety.blocklist import DEFAULT_BLOCKLIST
from svc_proto.phone.safety.settings import ConfirmationPolicy, SafetySettings, Switch


def test_defaults_are_restrictive() -> None:
    settings = SafetySettings()
    assert not settings.armed  # wire bridge 5.1: "Default: master off"
    assert settings.answers is ConfirmationPolicy.ASK
    assert not settings.unattended
    assert settings.confirmation_timeout < 30.0  # shorter than the caller's timeout
    assert (settings.idle_minutes, settings.blocklist) == (30, DEFAULT_BLOCKLIST)


def test_switch_names_are_lower_case_words() -> None:
    assert all(switch.value.isalpha() and switch.value.islower() for switch in Switch)
