import pytest

from svc_proto.schema.effects.command_effects import Effect
from svc_proto.schema.effects.effect_kinds import EffectKind
from svc_proto.schema.effects.screen_tree import ScreenTree
from svc_proto.schema.effects.task_apps import effect_elsewhere

MAIL, SHOP = "com.example.mail", "org.x.coffee"
BOUNDS = {"left": 0, "top": 0, "right": 100, "bottom": 100}


def screen(package: str, view_id: str = "", first: str = "w0:0") -> ScreenTree:
    nodes = [{"nodeId": first, "text": "Start", "clickable": True, "viewId": view_id, "bounds": BOUNDS}]
    nodes.append({"nodeId": "w1:0", "text": "Next", "clickable": True, "viewId": f"{MAIL}:id/next", "bounds": BOUNDS})
    return ScreenTree.parse({"packageName": package, "rootBounds": BOUNDS, "nodes": nodes})


@pytest.mark.parametrize(
    ("path", "arguments", "package", "place"),
    [
        ("/tap_text", {"text": "Start"}, SHOP, SHOP),
        ("/tap_text", {"text": "Start"}, MAIL, None),
        ("/tap", {"nodeId": "w1:0"}, SHOP, None),  # another window
        ("/tap", {"nodeId": "w9:9"}, SHOP, SHOP),  # a target that is not known
        ("/tap", {"x": 5, "y": 5}, SHOP, SHOP),
        ("/tap", {"x": 5, "y": 5}, "com.android.launcher3", None),
        ("/tap", {"x": 5, "y": 5}, "com.google.android.inputmethod.latin", None),
        ("/type", {"text": "Hi"}, SHOP, SHOP),
        ("/press_key", {"key": "enter"}, SHOP, SHOP),
        ("/press_key", {"key": "back"}, SHOP, None),
        ("/scroll", {"direction": "down"}, SHOP, None),
        ("/open_app", {"package": SHOP}, MAIL, SHOP),
        ("/open_app", {"package": MAIL}, SHOP, None),
        ("/call", {"number": "1"}, SHOP, None),
    ],
)
def test_acts_elsewhere(path: str, arguments: dict[str, object], package: str, place: str | None) -> None:
    expected = None if place is None else Effect(kind=EffectKind.ELSEWHERE, place=place)
    assert effect_elsewhere(path, arguments, screen(package), (MAIL,)) == expected
