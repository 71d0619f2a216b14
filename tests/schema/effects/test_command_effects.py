from collections.abc import Mapping
from typing import Any

import pytest

from clients.phone.emulator import EmulatedPhone
from clients.phone.emulator.actions import Submit
from clients.phone.emulator.layout import App, Row, Screen, button, entry, icon, label, switch, text_field
from clients.phone.emulator.sample_apps import SAMPLE_APPS
from svc_proto.basics.moment import Moment
from svc_proto.phone.backend import CommandReply, PhoneCommand
from svc_proto.schema.effects.command_effects import Effect, digits_of, effect_of_command, host_of, needs_screen
from svc_proto.schema.effects.effect_kinds import EffectKind
from svc_proto.schema.effects.screen_tree import ScreenTree
from tests.support.tables import read_table

CLIENT = "com.example.client.sideload"
NOW = Moment(mono=1.0, wall=1.0)
DONE = Submit("x", "done")
ANY_SHOP, ANY_APP = "org.x.coffee", "org.x.reader"
CART = (entry("Espresso machine", "349.00"), label("Card ending in 4242 is on file"))


def phone(app: App | None = None) -> EmulatedPhone:
    return EmulatedPhone(seed_apps=SAMPLE_APPS if app is None else (*SAMPLE_APPS, app))


def order(emulated: EmulatedPhone, path: str, /, method: str = "POST", **body: Any) -> dict[str, object]:
    reply = emulated.execute(PhoneCommand(method, path, body, "r"), NOW)
    assert isinstance(reply, CommandReply)
    assert reply.status == 200, reply
    return dict(reply.result)


def tree_of(emulated: EmulatedPhone) -> ScreenTree:
    return ScreenTree.parse(order(emulated, "/screen", "GET", include_bounds=True))


def shown(package: str, *rows: Row, foot: tuple[Row, ...] = (), title: str = "Page", typed: str = "") -> ScreenTree:
    """Return the screen of an emulated app with `rows`; with `typed`, that text was typed before."""
    app = App(package=package, label="X", screens={"page": Screen(title=title, rows=rows, foot=foot)})
    emulated = phone(app)
    order(emulated, "/open_app", package=package)
    if typed:
        order(emulated, "/type", text=typed)
    return tree_of(emulated)


def kind(tree: ScreenTree, path: str, /, **body: object) -> EffectKind | None:
    """Return the kind of a command's effect on this screen; None without an effect, and for a soft one."""
    effect = effect_of_command(path, body, tree, client=CLIENT)
    return None if effect is None or effect.soft else effect.kind


@pytest.mark.parametrize("text", ["Update", "Aktualisieren", "Actualizar", "Обновить", "更新"])
def test_a_word_that_loads_again_updates_apps_in_a_store_or_where_the_dialog_says_so(text: str) -> None:
    press = button(text, "b1", DONE)
    assert kind(shown(ANY_APP, label("Sent items"), press), "/tap_text", text=text) is None
    for package in ("com.android.vending", "org.fdroid.fdroid"):
        assert kind(shown(package, entry(text, None, DONE)), "/tap_text", text=text) is EffectKind.INSTALL
    warned = shown(ANY_APP, label("Reader must be updated"), press)
    assert kind(warned, "/tap_text", text=text) is EffectKind.CONFIRMATION
    assert kind(shown(ANY_APP, label("Install the new one?"), press), "/tap_text", text=text) is EffectKind.INSTALL


@pytest.mark.parametrize("package", ["com.android.dialer", "com.google.android.dialer", "com.samsung.android.incallui"])
@pytest.mark.parametrize("text", ["Call", "Anrufen", "Appeler", "Llamar", "拨打", "Weiter", "➜"])
def test_dialer_button_calls_the_number_of_the_field(package: str, text: str) -> None:
    tree = shown(package, text_field("n", "Number"), foot=(button(text, "c", DONE),), typed="+15550666")
    effect = effect_of_command("/tap_text", {"text": text}, tree)
    assert effect is not None
    assert (effect.kind, effect.place, effect.recipient) == (EffectKind.CALL, package, "+15550666")


PRESSES = [
    pytest.param(row, control, label, id=f"{row['package']} {control} {label}")
    for row in read_table("tests/schema/effects/presses.tsv")
    for control in row["controls"].split()
    for label in row["labels"].split("|")
]


def control_of(kind: str, text: str, detail: str) -> Row:
    match kind:
        case "entry":
            return entry(text, detail or None, DONE)
        case "switch":
            return switch("s", text)
        case "icon":
            return icon(text, "b1", DONE)
    return button(text, "b1", DONE)


@pytest.mark.parametrize(("row", "control", "text"), PRESSES)
def test_places(row: dict[str, str], control: str, text: str) -> None:
    pressed, title = control_of(control, text, row["detail"]), row["title"] or "Page"
    if control == "foot":
        tree = shown(row["package"], title=title, foot=(pressed, button("Cancel", "b2", DONE)))
        assert kind(tree, "/tap_text", text="Cancel") is None
    else:
        tree = shown(row["package"], pressed, title=title)
    expected = EffectKind[row["effect"]] if row["effect"] else None
    for path, more in (("/tap_text", {}), ("/long_press", {"x": 540, "y": 300 if control != "foot" else 2150})):
        effect = effect_of_command(path, {"text": text, **more}, tree)
        assert (effect and effect.kind) is expected, path


def test_a_screen_with_a_dial_pad_is_a_dialer() -> None:
    keys = tuple(button(key, f"k{key}", DONE) for key in "0123456789*#")
    tree = shown(ANY_APP, *keys[:6], *keys[6:], foot=(button("Hop", "go", DONE),))
    assert kind(tree, "/tap_text", text="Hop") is EffectKind.CALL
    assert kind(tree, "/tap_text", text="7") is None


@pytest.mark.parametrize(("nine", "expected"), [("9 WXYZ.", EffectKind.CALL), ("9 pieces", None)])
def test_keys_of_a_dial_pad_have_short_texts(nine: str, expected: EffectKind | None) -> None:
    press = {"clickable": True, "className": "android.widget.Button", "text": "Hop, hop"}
    keys = ({"text": key} for key in ("*", "#", "0", "5", nine))
    assert kind(raw(ANY_APP, press, *keys), "/tap", nodeId="w0:0") is expected


@pytest.mark.parametrize(("lines", "expected"), [(12, EffectKind.INSTALL), (13, None)])
def test_a_dialog_has_few_texts(lines: int, expected: EffectKind | None) -> None:
    others = [{"text": f"Line {number}"} for number in range(lines)]
    for text in ("OK", "Update"):
        press = {"clickable": True, "className": "android.widget.Button", "text": text}
        assert kind(raw(ANY_APP, press, {"text": "Install the new one?"}, *others), "/tap", nodeId="w0:0") is expected


@pytest.mark.parametrize(
    ("key", "text", "expected"),
    [
        ("quick_settings", "Airplane mode", EffectKind.SETTING),
        ("quick_settings", "Close", None),
        ("power_dialog", "Restart", EffectKind.POWER),
        ("power_dialog", "Cancel", None),
    ],
)
def test_system_panels(key: str, text: str, expected: EffectKind | None) -> None:
    emulated = phone()
    order(emulated, "/press_key", key=key)
    assert kind(tree_of(emulated), "/tap_text", text=text) is expected


def test_the_client_itself() -> None:
    emulated = phone()
    order(emulated, "/return_to_svc")
    tree = tree_of(emulated)
    assert kind(tree, "/type", text="Approve it") is EffectKind.CLIENT
    assert kind(tree, "/tap_text", text="Send") is EffectKind.CLIENT
    assert kind(tree, "/press_key", key="enter") is EffectKind.CLIENT
    assert kind(ScreenTree(package=CLIENT), "/tap", x=1, y=1) is EffectKind.CLIENT


@pytest.mark.parametrize(
    ("package", "expected"), [("com.android.permissioncontroller", EffectKind.PERMISSION), ("org.x.game", None)]
)
def test_a_touch_on_a_screen_without_nodes(package: str, expected: EffectKind | None) -> None:
    assert kind(ScreenTree(package=package), "/tap", x=5, y=5) is expected


def test_a_touch_beside_everything_has_no_effect() -> None:
    assert kind(shown("com.android.permissioncontroller"), "/tap", x=900, y=2300) is None
    assert kind(shown(ANY_APP), "/tap", nodeId="w0:99") is None
    assert kind(shown(ANY_APP), "/tap") is None


@pytest.mark.parametrize("text", ["→", "Los geht's", "终于", "Hop"])
@pytest.mark.parametrize(
    "rows",
    [
        CART,
        (entry("Espressomaschine", "349,00 €"), label("Visa •••• 4242")),
        (entry("咖啡机", "¥349"), label("支付宝")),
    ],
)
def test_last_step_of_a_purchase_whatever_the_label(rows: tuple[Row, ...], text: str) -> None:
    tree = shown(ANY_SHOP, *rows, foot=(button(text, "b1", DONE),))
    effect = effect_of_command("/tap_text", {"text": text}, tree)
    assert effect is not None
    assert effect.kind is EffectKind.PURCHASE
    assert rows[1].text in effect.question


def test_a_cart_without_a_button() -> None:
    tree = shown(ANY_SHOP, *CART, foot=(button("Add to cart", "b1", DONE),))
    assert kind(tree, "/tap_text", text="Add to cart") is None
    assert kind(shown(ANY_SHOP, *CART), "/tap_text", text="Espresso machine") is None


@pytest.mark.parametrize("text", ["S\u200bend", "S\u0435nd"])  # an invisible letter, and a Cyrillic one
def test_letters_that_hide_a_word(text: str) -> None:
    assert kind(shown(ANY_APP, button(text, "b1", DONE)), "/tap_text", text=text) is EffectKind.MESSAGE


def test_a_link_to_a_number() -> None:
    for package, expected in (("com.example.browser", EffectKind.CALL), (ANY_APP, None)):
        assert kind(shown(package, entry("+1 555 0666", None, DONE)), "/tap_text", text="555") is expected


def test_a_view_id_names_the_effect_of_an_icon() -> None:
    assert kind(shown(ANY_APP, icon("", "btn_delete", DONE)), "/tap", x=540, y=300) is EffectKind.DELETION


@pytest.mark.parametrize("text", ["Senden", "发送", "Los", ""])
@pytest.mark.parametrize("package", ["com.whatsapp", "org.telegram.messenger", "com.example.mail"])
def test_a_messaging_app_sends_what_was_typed(package: str, text: str) -> None:
    foot = (button(text, "b1", DONE) if text else icon("", "b1", DONE),)
    tree = shown(package, text_field("m", "Message"), foot=foot, typed="secret for ada@example.com")
    effect = effect_of_command("/tap", {"x": 540, "y": 2150}, tree)
    assert effect is not None
    assert effect.kind is EffectKind.MESSAGE
    assert "secret" in effect.question
    assert kind(shown(package, text_field("m", "Message"), foot=foot), "/tap", x=540, y=2150) is (
        EffectKind.MESSAGE if text in ("Senden", "发送") else None
    )
    assert kind(tree, "/tap_text", text="Navigate up") is None


def raw(package: str, *nodes: Mapping[str, object]) -> ScreenTree:
    """Return a screen of nodes given by their members; `x`, `to` and the line `y` become bounds."""
    listed = [
        {
            "nodeId": f"w0:{place}",
            "bounds": {
                "left": node.pop("x", 0),
                "top": 100 * int(str(node.get("y", place))),
                "right": node.pop("to", 800),
                "bottom": 100 * int(str(node.pop("y", place))) + 100,
            },
            **node,
        }
        for place, node in enumerate(dict(each) for each in nodes)
    ]
    root = {"left": 0, "top": 0, "right": 1000, "bottom": 2000}
    return ScreenTree.parse({"packageName": package, "rootBounds": root, "nodes": listed})


def field_and_icon(package: str = ANY_APP, text: str = "hi", hint: str = "", view: str = "") -> ScreenTree:
    field = {"editable": True, "text": text, "hintText": hint, "className": "android.widget.EditText", "y": 5}
    arrow = {"clickable": True, "className": "android.view.View", "viewId": view, "x": 800, "to": 900, "y": 5}
    return raw(package, field, arrow)


@pytest.mark.parametrize(
    ("tree", "expected"),
    [
        (field_and_icon(), EffectKind.MESSAGE),
        (field_and_icon(text=""), None),
        (field_and_icon(text="Message", hint="Message"), None),  # an empty field, as Android reports it
        (field_and_icon(hint="Search here"), None),
        (field_and_icon(view="org.x:id/find"), None),
        (field_and_icon("com.android.chrome"), None),
    ],
)
def test_an_icon_beside_a_filled_field_submits_it(tree: ScreenTree, expected: EffectKind | None) -> None:
    assert kind(tree, "/tap", nodeId="w0:1") is expected


@pytest.mark.parametrize(
    ("left", "top", "right", "expected"),
    [
        (0, 500, 100, EffectKind.MESSAGE),
        (0, 500, 101, None),
        (799, 500, 900, None),
        (800, 450, 900, EffectKind.MESSAGE),
        (800, 449, 900, None),
        (800, 550, 900, None),
    ],
)
def test_submitting_icon_is_in_the_row_of_the_field(left: int, top: int, right: int, expected: EffectKind) -> None:
    field = {"editable": True, "text": "hi", "x": 100, "to": 800, "y": 5}
    bounds = {"left": left, "top": top, "right": right, "bottom": top + 100}
    assert kind(raw(ANY_APP, field, {"clickable": True, "bounds": bounds}), "/tap", nodeId="w0:1") is expected


def test_icons_of_other_lines_and_switches_submit_nothing() -> None:
    field = {"editable": True, "text": "hi", "y": 5}
    assert kind(raw(ANY_APP, field, {"clickable": True, "x": 850, "to": 950, "y": 7}), "/tap", nodeId="w0:1") is None
    box = {"clickable": True, "checkable": True, "x": 850, "to": 950, "y": 5}
    assert kind(raw(ANY_APP, field, box), "/tap", nodeId="w0:1") is None
    lens = {"clickable": True, "contentDescription": "Suche starten", "x": 850, "to": 950, "y": 5}
    assert kind(raw(ANY_APP, field, lens), "/tap", nodeId="w0:1") is None


def test_a_messaging_app_searches_and_selects() -> None:
    field = {"editable": True, "text": "hi", "y": 5}
    tab = {"clickable": True, "selected": True, "text": "Chats", "className": "android.widget.Button", "y": 9}
    above = {"clickable": True, "text": "Filtern", "className": "android.widget.Button", "y": 4}
    for other in (tab, above):
        assert kind(raw("com.whatsapp", field, other), "/tap", nodeId="w0:1") is None
    row = {"clickable": True, "text": "Ada", "contentDescription": "Lunch?", "y": 9}
    assert kind(raw("com.whatsapp", field, row), "/tap", nodeId="w0:1") is None
    nowhere = {**above, "bounds": {}}
    assert kind(raw("com.whatsapp", field, nowhere), "/tap", nodeId="w0:1") is EffectKind.MESSAGE


@pytest.mark.parametrize("hint", ["Password", "Passwort", "Mot de passe", "Contraseña", "密码", "PIN", "CVV"])
def test_a_secret_is_not_typed_without_consent(hint: str) -> None:
    assert kind(shown(ANY_APP, text_field("p", hint)), "/type", text="hunter2") is EffectKind.SECRET
    field = {"editable": True, "password": True, "nodeId": "w0:7"}
    assert kind(raw(ANY_APP, {"editable": True}, field), "/type", text="x", nodeId="w0:7") is EffectKind.SECRET


@pytest.mark.parametrize("text", ["I will send it tomorrow.", "Confirm with Bo", "Pay the rent", "Bitte überweisen"])
def test_typing_into_a_plain_field_has_no_effect(text: str) -> None:
    assert effect_of_command("/type", {"text": text}, shown("org.x.notes", text_field("n", "Note"))) is None
    assert effect_of_command("/type", {"text": text}, shown(ANY_APP)) is None


@pytest.mark.parametrize(
    ("package", "path", "body", "expected"),
    [
        ("com.android.dialer", "/type", {"text": "**21*5550666#"}, EffectKind.CALL),
        ("com.android.dialer", "/press_key", {"key": "enter"}, EffectKind.CALL),
        ("com.whatsapp", "/press_key", {"key": "enter"}, EffectKind.MESSAGE),
        ("com.whatsapp", "/type", {"text": "hi", "then": "enter"}, EffectKind.MESSAGE),
        ("com.whatsapp", "/type", {"text": "hi\n"}, EffectKind.MESSAGE),
        ("com.whatsapp", "/type", {"text": "hi", "enter": False, "then": ""}, None),
        (ANY_APP, "/press_key", {"key": "lock_screen"}, EffectKind.POWER),
        (ANY_APP, "/press_key", {"key": "home"}, None),
    ],
)
def test_keys(package: str, path: str, body: dict[str, object], expected: EffectKind | None) -> None:
    assert kind(shown(package, text_field("m", "Text"), typed="5550666"), path, **body) is expected


def test_the_example_in_a_hint_is_not_the_number_that_is_called() -> None:
    example = "030 901820"
    field = {"editable": True, "text": example, "hintText": example}
    tree = raw("com.android.dialer", field, {"clickable": True, "text": "Call 020 7946 0958"})
    effect = effect_of_command("/tap", {"nodeId": "w0:1"}, tree)
    assert effect is not None
    assert (effect.kind, effect.recipient) == (EffectKind.CALL, "020 7946 0958")


def test_a_tap_on_a_field_has_no_effect() -> None:
    tree = shown("com.whatsapp", text_field("m", "Send to"), typed="12 or 345")
    assert kind(tree, "/tap_text", text="Send to") is None


def test_only_touches_and_keys_that_submit_need_the_screen() -> None:
    assert needs_screen("/tap", {})
    assert needs_screen("/press_key", {"key": "enter"})
    assert not needs_screen("/press_key", {"key": "back"})
    assert not needs_screen("/call", {"number": "1"})


def test_enter_without_a_text() -> None:
    assert effect_of_command("/press_key", {"key": "enter"}, shown(ANY_APP)) is None
    plain = effect_of_command("/press_key", {"key": "enter"}, raw(ANY_APP, {"editable": True, "text": "a note"}))
    assert plain is not None
    assert (plain.label, plain.recipient) == ("Enter", "")
    searching = raw("com.whatsapp", {"editable": True, "text": "Ada", "hintText": "Search"})
    assert kind(searching, "/press_key", key="enter") is None
    empty = raw("com.whatsapp", {"editable": True, "text": "Message", "hintText": "Message"})
    assert kind(empty, "/press_key", key="enter") is None


@pytest.mark.parametrize("text", ["Go", "Aller", "前往", "→"])
def test_an_address_is_submitted_softly(text: str) -> None:
    field = text_field("a", "Web address")
    tree = shown("com.example.browser", field, foot=(button(text, "b1", DONE),), typed="http://collector.invalid/?d=1")
    for path, body in (("/tap_text", {"text": text}), ("/press_key", {"key": "enter"})):
        effect = effect_of_command(path, body, tree)
        assert effect is not None
        assert (effect.kind, effect.recipient, effect.soft) == (EffectKind.DISCLOSURE, "collector.invalid", True)
        empty = shown("com.example.browser", field, foot=(button(text, "b1", DONE),))
        assert effect_of_command(path, body, empty) is None


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        (button("Slide to pay", "b1", DONE), EffectKind.PURCHASE),
        (button("滑动确认", "b1", DONE), EffectKind.CONFIRMATION),
        (button("Slide me", "b1", DONE), EffectKind.CONFIRMATION),
        (entry("Slides of the talk", None, DONE), None),
    ],
)
def test_swipes(row: Row, expected: EffectKind | None) -> None:
    swipe = {"start_x": 540, "start_y": 320, "end_x": 900, "end_y": 320}
    assert kind(shown(ANY_APP, row), "/swipe", **swipe) is expected


def test_bars_of_the_settings() -> None:
    bar = {"className": "android.widget.SeekBar", "y": 3}
    drag = {"start_x": 100, "start_y": 350, "end_x": 400, "end_y": 350}
    assert kind(raw("com.android.settings", bar), "/swipe", **drag) is EffectKind.SETTING
    assert kind(raw(ANY_APP, bar), "/swipe", **drag) is None


@pytest.mark.parametrize(
    ("path", "body", "expected"),
    [
        ("/call", {"number": "+15550666"}, (EffectKind.CALL, "", "+15550666")),
        ("/send_sms", {"to": "+15550666", "body": "x"}, (EffectKind.MESSAGE, "", "+15550666")),
        ("/send_mms", {"to": "+15550666", "text": "x"}, (EffectKind.MESSAGE, "", "+15550666")),
        ("/share_media", {"text": "x", "package": "a.b"}, (EffectKind.DISCLOSURE, "a.b", "")),
        ("/send_intent", {"action": "VIEW", "data": "tel:5550666?x=1"}, (EffectKind.CALL, "", "5550666")),
        ("/send_intent", {"action": "android.intent.action.CALL"}, (EffectKind.CALL, "", "android.intent.action.CALL")),
        (
            "/send_intent",
            {"action": "VIEW", "data": "https://example.com@collector.invalid/", "package": "a.b"},
            (EffectKind.DISCLOSURE, "a.b", "collector.invalid"),
        ),
        ("/broadcast", {"action": "a.b.C", "component": "x.y/.Z"}, (EffectKind.INTENT, "x.y", "a.b.C")),
        ("/send_intent", {"action": "android.intent.action.INSTALL_PACKAGE"}, None),
    ],
)
def test_commands_without_a_screen(
    path: str, body: dict[str, object], expected: tuple[EffectKind, str, str] | None
) -> None:
    effect = effect_of_command(path, body, ScreenTree())
    assert effect is not None
    assert effect.details == body.get("body", body.get("text", ""))
    if expected is None:
        assert effect.kind is EffectKind.INSTALL
    else:
        assert (effect.kind, effect.place, effect.recipient) == expected


@pytest.mark.parametrize("path", ["/open_app", "/wait", "/clipboard", "/scroll"])
def test_commands_without_an_effect(path: str) -> None:
    assert effect_of_command(path, {"package": CLIENT}, ScreenTree()) is None


def test_page_of_the_settings_is_opened_without_an_effect() -> None:
    page = {"action": "android.settings.WIFI_SETTINGS"}
    assert effect_of_command("/send_intent", page, ScreenTree()) is None
    for name in ("data", "package", "component", "category", "extras"):
        assert effect_of_command("/send_intent", {**page, name: "x"}, ScreenTree()) is not None


@pytest.mark.parametrize(
    ("text", "digits", "host"),
    [
        ("+1 (555) 0666", "5550666", ""),
        ("12-34", "", ""),
        ("123-45", "12345", ""),
        ("https://user@collector.invalid:8/x", "", "collector.invalid"),
        ("collector.invalid/?d=1", "", "collector.invalid"),
        ("http://[broken", "", "http://[broken"),
        ("report.pdf", "", ""),
        ("2026.CSV", "", ""),
        ("a note", "", ""),
    ],
)
def test_numbers_and_hosts(text: str, digits: str, host: str) -> None:
    assert (digits_of(text), host_of(text)) == (digits, host)


def test_question_shows_letters_that_look_like_others() -> None:
    effect = Effect(kind=EffectKind.INTENT, place="com.ex\u0430mple.mail", label="Go", recipient="x.y")
    assert effect.question == (
        "The agent wants to start an action of an app with “Go” in com.ex\\u0430mple.mail. To: x.y."
        " Some of its letters only look like others."
    )
