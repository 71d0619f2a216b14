"""Effects of a phone command that need the owner's consent, by the command, the app and the label (wire bridge 3, 5.2).

    effect = effect_of_command("/tap_text", {"text": "Call"}, tree)

`needs_screen` reports whether the effect of a command depends on the screen.
"""

import re
from collections.abc import Iterable, Mapping
from urllib.parse import urlsplit

from attrs import frozen

from svc_proto.basics.plain_letters import has_look_alikes, plain, show_look_alikes
from svc_proto.schema.device_control import ScreenGesture
from svc_proto.schema.device_control_routes import DEVICE_CONTROL
from svc_proto.schema.effects.app_kinds import AppKind, kind_of_app
from svc_proto.schema.effects.effect_kinds import VERBS, EffectKind
from svc_proto.schema.effects.effect_words import (
    MAX_WORDS,
    is_confirming,
    is_harmless,
    is_refreshing,
    kind_of_label,
    kind_of_sentence,
)
from svc_proto.schema.effects.label_words import PAYMENT, PRICE, SEARCHING, SECRET, SLIDE
from svc_proto.schema.effects.screen_tree import ScreenTree, TouchedControl
from svc_proto.schema.json_object import JsonObject
from svc_proto.schema.screen_node import ScreenNode

__all__ = ["SCREEN_ROUTES", "Effect", "digits_of", "effect_of_command", "host_of", "needs_screen"]

SCREEN_ROUTES = frozenset(
    row.path for row in DEVICE_CONTROL.values() if row.gesture not in (None, ScreenGesture.SCROLL)
)
MAX_DETAILS = 600  # characters of the screen's texts in a question
MAX_DIALOG = 14  # texts of a screen that is short enough to be a dialog
MIN_DIGITS = 5  # of a number that can be called
SUFFIX = 7  # digits by which two numbers are the same, with and without their country
_ENTER_KEYS = ("enter", "go", "search", "done", "send", "next", "ime_action")
_ENTER_MEMBERS = ("enter", "submit", "press_enter", "ime_action", "then")
_POWER_KEYS = ("lock_screen", "power_dialog", "power")
_NUMBER = re.compile(r"\+?[\d][\d\s().\-/]{3,}\d|\d{3,}")
_DIAL_KEY = re.compile(r"[\d*#+]|[\d*#]\s?[^\d\s]{0,6}(?:\s[^\d\s]{1,4})?|.{0,3}voicemail.{0,3}", re.IGNORECASE)
_CODE = re.compile(r"[*#][\d*#]+#?")
# A name with an ending that is no top-level domain.
_FILE_NAME = re.compile(
    r"[^/:?#\s]+\.(?:csv|txt|pdf|jpe?g|png|gif|webp|svg|mid|mp3|mp4|wav|ogg|flac|docx?|xlsx?|pptx?|odt|ods|json|xml|log)",
    re.IGNORECASE,
)
_SCHEME = re.compile(
    r"\b(tel|sms|smsto|mms|mmsto|mailto|market|intent|upi|[a-z][a-z0-9+.-]{1,20})(?::|%3a)(?=//|[+\d?])", re.IGNORECASE
)
_SCHEMES = {
    "tel": EffectKind.CALL,
    "sms": EffectKind.MESSAGE,
    "smsto": EffectKind.MESSAGE,
    "mms": EffectKind.MESSAGE,
    "mmsto": EffectKind.MESSAGE,
    "market": EffectKind.INSTALL,
    "package": EffectKind.INSTALL,
    "upi": EffectKind.PURCHASE,
}
_VIEW_WORDS = re.compile(
    r"(?<![a-z])(?:btn|button|action|fab|icon|image|img|view|iv|layout|container|text|tv)(?![a-z])"
)
_WEB = ("http", "https", "about", "file", "content", "geo", "mailto", "javascript", "data")
_ACTIONS = (
    (EffectKind.CALL, r"\.call|\.dial\b"),
    (EffectKind.INSTALL, r"install|uninstall|\.delete\b"),
    (EffectKind.MESSAGE, r"\.send(to|_multiple)?\b|respond_via"),
)


@frozen(kw_only=True)
class Effect:
    """An effect: its kind, the app that it happens in, and what it is about.

    `recipient` is a number, a host, an address or the action of an intent; it is compared with the turn's denials.
    `details` is what the owner must see besides. A `soft` effect matters only once private data is in the turn.
    """

    kind: EffectKind
    place: str = ""
    label: str = ""
    recipient: str = ""
    details: str = ""
    soft: bool = False

    @property
    def question(self) -> str:
        """Return the effect as a text for people; words that mix Latin with look-alike letters are escaped."""
        pieces = [f"The agent wants to {VERBS[self.kind]}"]
        pieces += [f"with “{self.label}”"] if self.label else []
        pieces += [f"in {self.place}"] if self.place else []
        text = f"{' '.join(pieces)}."
        if self.recipient:
            text += f" To: {self.recipient}."
        if has_look_alikes(f"{self.place} {self.recipient} {self.label}"):
            text += " Some of its letters only look like others."
        if self.details:
            text += f" Shown there: {self.details}"
        return show_look_alikes(text)


def needs_screen(path: str, arguments: Mapping[str, object]) -> bool:
    """Report whether the effect of a command depends on the screen."""
    return path in SCREEN_ROUTES and (path != "/press_key" or JsonObject.of(arguments).text("key") in _ENTER_KEYS)


def effect_of_command(
    path: str, arguments: Mapping[str, object], tree: ScreenTree, *, client: str = ""
) -> Effect | None:
    """Return the effect of a command on a screen; None if it has none for which consent may be needed.

    `client` is the package of the phone's client app.
    """
    given = JsonObject.of(arguments)
    match path:
        case "/tap" | "/tap_text" | "/long_press" | "/drag":
            found = (_effect_of_press(control, tree, client) for control in tree.targets(path, given))
            effects = [effect for effect in found if effect is not None]
            firm = next((effect for effect in effects if not effect.soft), None)
            return firm or next(iter(effects), None) or _effect_of_blind_press(tree, client)
        case "/swipe":
            return next(filter(None, (_effect_of_swipe(control, tree) for control in tree.targets(path, given))), None)
        case "/type":
            return _effect_of_typing(given, tree, client)
        case "/press_key":
            return _effect_of_key(given.text("key"), tree, client)
        case "/call":
            return Effect(kind=EffectKind.CALL, recipient=given.text("number"))
        case "/send_sms" | "/send_mms":
            body = given.text("body") or given.text("text")
            return Effect(kind=EffectKind.MESSAGE, recipient=given.text("to"), details=body[:MAX_DETAILS])
        case "/share_media":
            about = (given.text("text"), given.text("title"))
            details = " ".join(each for each in about if each)
            return Effect(kind=EffectKind.DISCLOSURE, place=given.text("package"), details=details[:MAX_DETAILS])
        case "/send_intent" | "/broadcast":
            return None if _opens_settings(path, given) else _effect_of_intent(given)
        case _:
            return None


def digits_of(text: str) -> str:
    """Return the last seven digits of a phone number, by which two are compared; empty for fewer than five digits."""
    digits = "".join(str(int(each)) for each in text if each.isdecimal())
    return digits[-SUFFIX:] if len(digits) >= MIN_DIGITS else ""


def host_of(text: str) -> str:
    """Return the host of an address, without the user part that can imitate one; empty for other text.

    Of an address that cannot be parsed, the first 100 characters are returned.
    """
    address = text.strip()
    if _FILE_NAME.fullmatch(address):
        return ""
    if "://" not in address:
        address = f"//{address}" if re.match(r"[\w.-]+\.[a-z]{2,}(?:[/:?#]|$)", address, re.IGNORECASE) else ""
    try:
        return urlsplit(address).hostname or ""
    except ValueError:
        return address[:100]


# --- presses ----------------------------------------------------------------------------------------------------------


def _effect_of_press(control: TouchedControl, tree: ScreenTree, client: str) -> Effect | None:
    package, kind = control.package, kind_of_app(control.package)
    if client and package == client:
        return Effect(kind=EffectKind.CLIENT, place=package, label=control.label)
    if any(part.editable for part in control.parts[:1]):
        return None
    labels = control.labels
    named = _kind_by_words(control)
    if kind is AppKind.LAUNCHER:
        removed = named if named in (EffectKind.DELETION, EffectKind.INSTALL) else None
        return None if removed is None else _effect(removed, control, tree)
    if is_harmless(labels):
        return None
    found = _kind_by_place(kind, control, tree) or named or _kind_by_structure(control, tree)
    if found is not None:
        return _effect(found, control, tree)
    return _effect_of_submission(control.label, package, tree)


def _kind_by_place(kind: AppKind, control: TouchedControl, tree: ScreenTree) -> EffectKind | None:
    match kind:
        case AppKind.PERMISSIONS:
            return EffectKind.PERMISSION
        case AppKind.INSTALLER if control.is_checkable:
            return EffectKind.PERMISSION
        case AppKind.INSTALLER if control.is_button or is_refreshing(control.labels):
            return EffectKind.INSTALL
        case AppKind.SETTINGS if control.is_checkable or control.is_button:
            return _kind_by_words(control) or EffectKind.SETTING
        case AppKind.SYSTEM_UI if not control.is_row:
            return _kind_by_words(control) or EffectKind.SETTING
        case AppKind.SHARE_SHEET:
            return EffectKind.DISCLOSURE
        case AppKind.DIALER:
            return None if _is_dial_key(control) or control.node.selected else EffectKind.CALL
        case AppKind.MESSAGING if _sends_typed_text(control, tree):
            return EffectKind.MESSAGE
        case _:
            return None


def _kind_by_words(control: TouchedControl) -> EffectKind | None:
    """Return the kind of effect that the control's labels or its view id name; None if they name none.

    Of an entry of a list the view id is not read, and a phrase counts only if the label has hardly any other text. A
    URL scheme in a label counts as well, unless it is one of `_WEB`.
    """
    whole = not (control.is_button or control.is_checkable) and control.node.clickable
    for label in control.labels:
        kind = kind_of_label(label, whole=whole)
        if kind is None and control.is_button and len(label.split()) > MAX_WORDS:
            kind = kind_of_sentence(label)
        if kind is not None:
            return kind
        scheme = _SCHEME.search(label)
        if scheme is not None and (name := scheme[1].casefold()) not in _WEB:
            return _SCHEMES.get(name, EffectKind.INTENT)
    view = _VIEW_WORDS.sub(" ", control.node.view_id.rpartition("/")[2]).strip(" _")
    return None if whole or not view else kind_of_label(view)


def _kind_by_structure(control: TouchedControl, tree: ScreenTree) -> EffectKind | None:
    labels = tree.texts
    if not control.is_row and {"*", "#", "0", "5", "9"} <= {label[:1] for label in labels if len(label) < 8}:
        return None if _is_dial_key(control) else EffectKind.CALL
    if _is_number_to_call(control):
        return EffectKind.CALL
    if control.is_button and _shows_payment(tree):
        return EffectKind.PURCHASE
    if _stands_beside_typed_text(control, tree):
        return EffectKind.MESSAGE
    if is_refreshing(control.labels) and len(labels) <= MAX_DIALOG:
        kinds = (kind_of_sentence(label) for label in labels if label not in control.labels)
        return next((kind for kind in kinds if kind in (EffectKind.INSTALL, EffectKind.CONFIRMATION)), None)
    if (is_confirming(control.labels) or (control.is_button and not control.labels)) and len(labels) <= MAX_DIALOG:
        about = (label for label in labels if label not in control.labels)
        return next((kind for label in about if (kind := kind_of_sentence(label)) is not None), None)
    return None


def _is_dial_key(control: TouchedControl) -> bool:
    return bool(control.labels) and all(_DIAL_KEY.fullmatch(label.strip()) for label in control.labels)


def _is_number_to_call(control: TouchedControl) -> bool:
    """Report whether a control is a phone number that a touch may call.

    That is a button, or a control of a browser, with a number and at least half digits in its labels; or a control with
    a number in a contacts app.
    """
    if not control.is_button and kind_of_app(control.package) is not AppKind.BROWSER:
        return kind_of_app(control.package) is AppKind.PRIVATE and "contact" in control.package and _has_number(control)
    text = " ".join(control.labels)
    return _has_number(control) and sum(each.isdecimal() for each in text) * 2 >= len(text.replace(" ", ""))


def _has_number(control: TouchedControl) -> bool:
    return any(digits_of(found[0]) for label in control.labels for found in _NUMBER.finditer(label))


def _shows_payment(tree: ScreenTree) -> bool:
    """Report whether a screen looks like the last step of a purchase: it has a price and a way to pay."""
    text = "\n".join(tree.texts)
    return PRICE.search(text) is not None and PAYMENT.search(text) is not None


def _sends_typed_text(control: TouchedControl, tree: ScreenTree) -> bool:
    """Report whether a control of a messaging app may send the text that the screen's fields hold."""
    if control.is_row or not any(field.content.strip() for field in tree.fields):
        return False
    if control.node.selected or _is_at_top(control.node, tree):
        return not control.labels or _kind_by_words(control) is not None
    return control.is_button or not control.labels


def _is_at_top(node: ScreenNode, tree: ScreenTree) -> bool:
    first = min((field.bounds[1] for field in tree.fields), default=0)
    return 0 < node.bounds[3] <= first


def _stands_beside_typed_text(control: TouchedControl, tree: ScreenTree) -> bool:
    """Report whether a control in the row of a filled field may submit the text.

    Fields for searching and fields of a browser do not count.
    """
    if control.is_checkable or any(SEARCHING.search(label) for label in control.labels):
        return False
    for field in tree.fields:
        if not field.content.strip() or kind_of_app(tree.package) is AppKind.BROWSER:
            continue
        if any(SEARCHING.search(text) for text in (field.hint, field.description, field.view_id, control.node.view_id)):
            continue
        middle = control.node.center[1]
        beside = control.node.bounds[0] >= field.bounds[2] or control.node.bounds[2] <= field.bounds[0]
        if beside and control.node.area and field.bounds[1] <= middle < field.bounds[3]:
            return True
    return False


def _effect(kind: EffectKind, control: TouchedControl, tree: ScreenTree) -> Effect:
    details = recipient = ""
    if kind in (EffectKind.CALL, EffectKind.MESSAGE, EffectKind.PURCHASE, EffectKind.CONFIRMATION, EffectKind.DELETION):
        details = _shown(tree, control)
    if kind is EffectKind.CALL:
        recipient = _number_on(control, tree)
    if kind is EffectKind.MESSAGE:
        recipient = _number_on(control, tree) or next((text for text in tree.texts if "@" in text), "")
    return Effect(kind=kind, place=control.package, label=control.label, recipient=recipient, details=details)


def _number_on(control: TouchedControl, tree: ScreenTree) -> str:
    """Return the first phone number in the fields, else on the control, else on the screen; empty if there is none."""
    sources: Iterable[str] = (*(field.content for field in tree.fields), *control.labels, *tree.texts)
    found = (each[0].strip() for text in sources for each in _NUMBER.finditer(text) if digits_of(each[0]))
    return next(found, "")


def _shown(tree: ScreenTree, control: TouchedControl) -> str:
    texts = dict.fromkeys(text for text in tree.texts if text not in control.labels)
    return " | ".join(texts)[:MAX_DETAILS]


def _effect_of_submission(label: str, package: str, tree: ScreenTree) -> Effect | None:
    """Return the soft effect of a press on a screen with filled fields, whose text may leave the phone; else None."""
    typed = [field.content for field in tree.fields if field.content.strip()]
    if not typed:
        return None
    host = next((host for text in typed if (host := host_of(text))), "")
    details = " | ".join(typed)[:MAX_DETAILS]
    return Effect(kind=EffectKind.DISCLOSURE, place=package, label=label, recipient=host, details=details, soft=True)


def _effect_of_blind_press(tree: ScreenTree, client: str) -> Effect | None:
    """Return the effect of a touch whose target is unknown; None if it is not known to have one.

    It has one in the client's own app, and on a screen without nodes of an app in which each touch may have one.
    """
    if client and tree.package == client:
        return Effect(kind=EffectKind.CLIENT, place=tree.package)
    kinds = {
        AppKind.PERMISSIONS: EffectKind.PERMISSION,
        AppKind.INSTALLER: EffectKind.INSTALL,
        AppKind.SHARE_SHEET: EffectKind.DISCLOSURE,
    }
    kind = kinds.get(kind_of_app(tree.package))
    return None if tree.nodes or kind is None else Effect(kind=kind, place=tree.package)


# --- other commands ---------------------------------------------------------------------------------------------------


def _effect_of_swipe(control: TouchedControl, tree: ScreenTree) -> Effect | None:
    kind = kind_of_app(control.package)
    bar = any(part.class_name.endswith("SeekBar") for part in control.parts)
    if bar and kind in (AppKind.SETTINGS, AppKind.SYSTEM_UI):
        return _effect(EffectKind.SETTING, control, tree)
    if any(SLIDE.search(label) for label in control.labels):
        found = next((each for label in control.labels if (each := kind_of_sentence(label)) is not None), None)
        return _effect(found or EffectKind.CONFIRMATION, control, tree)
    return None


def _effect_of_typing(given: JsonObject, tree: ScreenTree, client: str) -> Effect | None:
    text, node_id = given.text("text"), given.text("nodeId", "node_id")
    field = next((node for node in tree.fields if node.node_id == node_id), tree.field)
    if client and tree.package == client:
        return Effect(kind=EffectKind.CLIENT, place=tree.package, details=text[:MAX_DETAILS])
    if field is not None and _is_secret(field):
        name = next(iter((*field.labels, field.hint)), "")
        return Effect(kind=EffectKind.SECRET, place=tree.package, label=name)
    if kind_of_app(tree.package) is AppKind.DIALER and _CODE.search(text):
        return Effect(kind=EffectKind.CALL, place=tree.package, recipient=text)
    if text.endswith("\n") or any(given.get(name) not in (None, False, "", "none", "next") for name in _ENTER_MEMBERS):
        return _effect_of_enter(tree, client, text)
    return None


def _is_secret(field: ScreenNode) -> bool:
    about = (field.description, field.hint, field.view_id.partition(":id/")[2].replace("_", " "))
    return field.hides_text or any(SECRET.search(plain(text)) or SECRET.search(text) for text in about)


def _effect_of_key(key: str, tree: ScreenTree, client: str) -> Effect | None:
    if key in _POWER_KEYS:
        return Effect(kind=EffectKind.POWER, label=key)
    return _effect_of_enter(tree, client) if key in _ENTER_KEYS else None


def _effect_of_enter(tree: ScreenTree, client: str, typed: str = "") -> Effect | None:
    """Return the effect of the key that submits a field: a call, a message, or a soft disclosure of its text.

    None if neither the field nor `typed` has a text, except in the client's own app.
    """
    if client and tree.package == client:
        return Effect(kind=EffectKind.CLIENT, place=tree.package)
    field = tree.field
    texts = [text for text in (typed.strip(), "" if field is None else field.content) if text]
    if not texts:
        return None
    details = " | ".join(dict.fromkeys(texts))[:MAX_DETAILS]
    about = () if field is None else (field.hint, field.description, field.view_id)
    match kind_of_app(tree.package):
        case AppKind.DIALER:
            return Effect(kind=EffectKind.CALL, place=tree.package, recipient=texts[0], details=details)
        case AppKind.MESSAGING if not any(SEARCHING.search(text) for text in about):
            return Effect(kind=EffectKind.MESSAGE, place=tree.package, label="Enter", details=details)
        case _:
            host = next((host for text in texts if (host := host_of(text))), "")
            return Effect(
                kind=EffectKind.DISCLOSURE,
                place=tree.package,
                label="Enter",
                recipient=host,
                details=details,
                soft=True,
            )


def _opens_settings(path: str, given: JsonObject) -> bool:
    """Report whether a command is an intent that only opens a page of Android's settings."""
    extra = any(given.get(name) for name in ("data", "package", "component", "category", "extras"))
    return (
        path == "/send_intent"
        and not extra
        and re.fullmatch(r"android\.settings\.[A-Z0-9_]+_SETTINGS", given.text("action")) is not None
    )


def _effect_of_intent(given: JsonObject) -> Effect:
    action, data = given.text("action"), given.text("data")
    package = given.text("package") or given.text("component").partition("/")[0]
    scheme = data.partition(":")[0].casefold() if ":" in data else ""
    kind = _SCHEMES.get(scheme)
    if kind is None:
        found = (kind for kind, pattern in _ACTIONS if re.search(pattern, action, re.IGNORECASE))
        kind = next(found, EffectKind.DISCLOSURE if scheme in ("http", "https", "mailto") else EffectKind.INTENT)
    if kind in (EffectKind.CALL, EffectKind.MESSAGE):
        recipient = data.partition(":")[2].partition("?")[0] or action
    else:
        recipient = host_of(data) if kind is EffectKind.DISCLOSURE else action
    return Effect(kind=kind, place=package, label=action, recipient=recipient)
