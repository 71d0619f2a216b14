"""Kinds of effects that need the owner's consent."""

from __future__ import annotations

from enum import Enum

__all__ = ["EffectKind"]


class EffectKind(Enum):
    """Kind of an effect that needs the owner's consent; the value completes "The agent wants to …"."""

    CALL = "place a call"
    MESSAGE = "send or publish something"
    PURCHASE = "buy or pay for something"
    INSTALL = "install, update or remove an app"
    PERMISSION = "grant a permission"
    SETTING = "change a setting of the phone"
    POWER = "lock or turn off the phone"
    DELETION = "delete something"
    ACCOUNT = "change or close an account"
    DISCLOSURE = "give data to another place"
    SECRET = "enter a password or a code"
    CLIENT = "use the app that controls this agent"
    CONFIRMATION = "confirm something"
    INTENT = "start an action of an app"
