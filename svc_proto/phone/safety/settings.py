"""What the person has set before the phone starts; what they change later goes through the gates' own controls."""

from __future__ import annotations

from enum import Enum

from attrs import frozen

from svc_proto.phone.safety.blocklist import DEFAULT_BLOCKLIST
from svc_proto.phone.safety.bounds import DEFAULT_IDLE_MINUTES, DEFAULT_TIMEOUT

__all__ = ["ConfirmationPolicy", "SafetySettings", "Switch"]


class ConfirmationPolicy(Enum):
    """Who answers the confirmations: the person, or a standing word of theirs."""

    ASK = "ask"
    ALLOW = "allow"
    DENY = "deny"


class Switch(Enum):
    """What the person turns on and off: in the app, and in the settings of the system."""

    MASTER = "master"
    UNATTENDED = "unattended"
    CHIP = "chip"  # the optional status overlay
    ACCESSIBILITY = "accessibility"
    CAPTURE = "capture"  # consent to screen capture
    OVERLAY = "overlay"  # permission to draw over other apps


@frozen(kw_only=True)
class SafetySettings:
    """A phone's safety switches. By default Device Control is off until it is turned on, and the person is asked."""

    armed: bool = False  # turn the master toggle on at the start
    answers: ConfirmationPolicy = ConfirmationPolicy.ASK
    unattended: bool = False
    chip: bool = False
    idle_minutes: int = DEFAULT_IDLE_MINUTES  # 5 to 120
    confirmation_timeout: float = DEFAULT_TIMEOUT  # s, 10 to 60; over 30 the caller has given up before
    blocklist: tuple[str, ...] = DEFAULT_BLOCKLIST
