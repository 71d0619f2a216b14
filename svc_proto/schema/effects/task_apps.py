"""Touches, typing, submitting keys and opening of an app which the task does not name: they need the owner's consent.

    effect = effect_elsewhere("/tap", {"nodeId": "w0:3"}, tree, ("com.example.mail",))

The launcher and the keyboard count as apps of every task.
"""

import re
from collections.abc import Mapping, Sequence

from svc_proto.schema.effects.app_kinds import AppKind, kind_of_app
from svc_proto.schema.effects.command_effects import Effect, needs_screen
from svc_proto.schema.effects.effect_kinds import EffectKind
from svc_proto.schema.effects.screen_tree import ScreenTree
from svc_proto.schema.json_object import JsonObject

__all__ = ["MAX_APPS", "MAX_PACKAGE", "effect_elsewhere"]

MAX_APPS = 32  # apps of one task: 400
MAX_PACKAGE = 255  # characters of a package: 400
_KEYBOARD = re.compile(r"inputmethod|keyboard|\bime\b|swiftkey|gboard", re.IGNORECASE)


def effect_elsewhere(
    path: str, arguments: Mapping[str, object], tree: ScreenTree, apps: Sequence[str]
) -> Effect | None:
    """Return the effect of a command that acts in an app that is not among the task's `apps`; None for any other.

    Examined are `/open_app` and the commands whose effect depends on the screen; others, such as `/call`, give None.
    """
    if path == "/open_app":
        places = [JsonObject.of(arguments).text("package")]
    elif needs_screen(path, arguments):
        places = [control.package for control in tree.targets(path, arguments)] or [tree.package]
    else:
        return None
    place = next((each for each in places if each not in apps and not _is_shared(each)), None)
    return None if place is None else Effect(kind=EffectKind.ELSEWHERE, place=place)


def _is_shared(package: str) -> bool:
    return kind_of_app(package) is AppKind.LAUNCHER or _KEYBOARD.search(package) is not None
