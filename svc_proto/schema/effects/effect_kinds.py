"""Kinds of effects that need the owner's consent."""

from enum import Enum

__all__ = ["VERBS", "EffectKind"]


class EffectKind(Enum):
    """Kind of an effect that needs the owner's consent; `VERBS` has the words for people."""

    CALL = "call"
    MESSAGE = "message"
    PURCHASE = "purchase"
    INSTALL = "install"
    PERMISSION = "permission"
    SETTING = "setting"
    POWER = "power"
    DELETION = "deletion"
    ACCOUNT = "account"
    DISCLOSURE = "disclosure"
    SECRET = "secret"
    CLIENT = "client"
    CONFIRMATION = "confirmation"
    INTENT = "intent"
    ELSEWHERE = "elsewhere"


VERBS = {
    EffectKind.CALL: "place a call",
    EffectKind.MESSAGE: "send or publish something",
    EffectKind.PURCHASE: "buy or pay for something",
    EffectKind.INSTALL: "install, update or remove an app",
    EffectKind.PERMISSION: "grant a permission",
    EffectKind.SETTING: "change a setting of the phone",
    EffectKind.POWER: "lock or turn off the phone",
    EffectKind.DELETION: "delete something",
    EffectKind.ACCOUNT: "change or close an account",
    EffectKind.DISCLOSURE: "give data to another place",
    EffectKind.SECRET: "enter a password or a code",
    EffectKind.CLIENT: "use the app that controls this agent",
    EffectKind.CONFIRMATION: "confirm something",
    EffectKind.INTENT: "start an action of an app",
    EffectKind.ELSEWHERE: "act in an app that the task does not name",
}
"""Completions of the sentence "The agent wants to …"."""
