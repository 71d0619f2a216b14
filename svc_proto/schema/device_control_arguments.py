"""Rules for the arguments of Device Control calls, so that invalid ones are refused before they reach a phone.

`schema.device_control_routes` names the rules of each route (wire bridge 3.3 to 3.7). A refusal has the status 400 and
the field's name. Phones parse numbers and booleans from text, so `12` and `"12"` are equivalent, and so are `true` and
`"true"`.
"""

from collections.abc import Callable, Mapping
from typing import TypeAlias

from svc_proto.basics.errors import Refused
from svc_proto.basics.fast_frozen import fast_frozen
from svc_proto.basics.validate import array, invalid, optional
from svc_proto.schema import coercion
from svc_proto.schema.json_object import as_text

__all__ = [
    "ANY_TEXT",
    "ATTACHMENTS_OR_TEXT",
    "DIRECTION",
    "NODE",
    "POINT",
    "STROKE",
    "ArgumentRule",
    "either_rule",
    "flag_rule",
    "text_rule",
    "integer_rule",
]

Arguments: TypeAlias = Mapping[str, object]
Check: TypeAlias = Callable[[Arguments], None]


@fast_frozen
class ArgumentRule:
    """A check of arguments. For documents: the types of its members, whether all are required, and a remark."""

    check: Check
    # By member: word (a text that is not blank), text, name, whole, place (not below 0), flag, array, any.
    types: Mapping[str, str]
    required: bool = True
    words: str = ""


def text_rule(*names: str, blank: bool = False) -> ArgumentRule:
    """Return the rule that the first present member of `names` is text, or a number; one of them must be present.

    The text must not be blank, unless `blank` is set.
    """

    def check(arguments: Arguments) -> None:
        for name in names:
            value = arguments.get(name)
            if value is None:
                continue
            found = coercion.coerce_text(value)
            if found is None:
                raise invalid(name, "a string")
            if not blank and not found.strip():
                raise invalid(name, "a string that is not blank")
            return
        raise invalid(names[0], "present")

    alone = len(names) == 1
    return ArgumentRule(
        check, dict.fromkeys(names, "text" if blank else "word"), alone, "" if alone else " or ".join(names)
    )


def integer_rule(*names: str, required: bool = True, least: int | None = None) -> ArgumentRule:
    """Return the rule that each of the members `names` is a whole number, or text that reads as one.

    Unless `required`, a member may be absent. `least` is the smallest permitted number.
    """

    def check(arguments: Arguments) -> None:
        for name in names:
            value = arguments.get(name)
            if value is None and not required:
                continue
            number = coercion.coerce_integer(value)  # 3.0 is invalid for a phone
            if number is None:
                raise invalid(name, "a whole number")
            if least is not None and number < least:
                raise invalid(name, f"a whole number, at least {least}")

    return ArgumentRule(check, dict.fromkeys(names, "whole" if least is None else "place"), required)


def flag_rule(name: str, *, required: bool = False) -> ArgumentRule:
    """Return the rule that the member is true or false, as a boolean or text; it may be absent unless `required`."""

    def check(arguments: Arguments) -> None:
        value = arguments.get(name)
        if coercion.coerce_boolean(value) is None and (required or value is not None):
            raise invalid(name, "true or false")

    return ArgumentRule(check, {name: "flag"}, required)


def _choice(name: str, allowed: tuple[str, ...]) -> ArgumentRule:
    """Return the rule that the member is one of a few words, whatever its letter case and the blanks around it."""

    def check(arguments: Arguments) -> None:
        if (as_text(arguments.get(name)) or "").strip().lower() not in allowed:
            raise invalid(name, f"one of {', '.join(allowed)}")

    return ArgumentRule(check, {name: "name"}, words=f"{name} ({', '.join(allowed)})")


def either_rule(field: str, *rules: ArgumentRule) -> ArgumentRule:
    """Return the rule that at least one of the rules holds; the refusal names `field`."""

    def check(arguments: Arguments) -> None:
        for rule in rules:
            try:
                rule.check(arguments)
            except Refused:
                continue
            return
        raise invalid(field, "present, or what may stand for it")

    kinds = {name: kind for rule in rules for name, kind in rule.types.items()}
    return ArgumentRule(check, kinds, False, " or ".join(rule.words or " and ".join(rule.types) for rule in rules))


def _handover(arguments: Arguments) -> None:
    """Raise `Refused` 400 unless there is an attachment or text to share.

    Raise it also if `attachments`, `media_tokens` or `paths` is present and no list.
    """
    for name in ("attachments", "media_tokens", "paths"):
        optional(arguments, name, array)
    media = ("attachments", "media", "media_token", "token", "path", "media_tokens", "paths", "text", "body")
    if not any(arguments.get(name) for name in media):
        raise invalid("attachments", "present, unless there is text")


ATTACHMENTS_OR_TEXT = ArgumentRule(
    _handover,
    {"attachments": "array", "media_tokens": "array", "paths": "array", "text": "any"},
    required=False,
    words="files by any of these members, or text",
)
ANY_TEXT = ArgumentRule(lambda arguments: None, {"text": "any"}, required=False, words="text: what it has to hold")
NODE = text_rule("nodeId", "node_id")
POINT = integer_rule("x", "y", least=0)
STROKE = integer_rule("start_x", "start_y", "end_x", "end_y")
DIRECTION = _choice("direction", ("up", "down", "left", "right"))
