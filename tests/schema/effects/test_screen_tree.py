import pytest

from svc_proto.schema.effects.screen_tree import ScreenTree


def bounds(left: int, top: int, right: int, bottom: int) -> dict[str, int]:
    return {"left": left, "top": top, "right": right, "bottom": bottom}


TREE = ScreenTree.parse(
    {
        "packageName": "org.x.overlay",
        "rootBounds": bounds(0, 0, 100, 100),
        "nodes": [
            {"nodeId": "w0:0", "clickable": True, "className": "a.Layout", "bounds": bounds(0, 0, 100, 20)},
            {"nodeId": "w0:1", "text": "Wi-Fi", "bounds": bounds(0, 0, 80, 20)},
            {"nodeId": "w0:2", "className": "a.Switch", "checked": True, "bounds": bounds(80, 0, 100, 20)},
            {"nodeId": "w0:3", "text": "Wi-Fi calling", "clickable": True, "bounds": bounds(0, 20, 100, 40)},
            {"nodeId": "w0:4", "text": "Note", "editable": True, "bounds": bounds(0, 40, 100, 60)},
            {"nodeId": "w1:5", "viewId": "com.android.settings:id/x", "text": "B", "bounds": bounds(0, 0, 100, 90)},
            {"nodeId": "w2:6", "text": "Unknown"},
        ],
    }
)


def test_windows_behind_the_first_have_their_own_package() -> None:
    packages = [TREE.package_of(node) for node in TREE.nodes[4:]]
    assert packages == ["org.x.overlay", "com.android.settings", "org.x.overlay"]


@pytest.mark.parametrize(
    ("path", "arguments", "expected"),
    [
        ("/tap_text", {"text": "Wi-Fi"}, ["w0:0", "w0:3"]),
        ("/tap_text", {"text": "calling"}, ["w0:3"]),
        ("/tap_text", {"text": " "}, []),
        ("/tap", {"nodeId": "w0:2"}, ["w0:0"]),
        ("/tap", {"x": 50, "y": 30}, ["w0:3"]),
        ("/tap", {"x": 50, "y": 80}, ["w1:5"]),
        ("/swipe", {"start_x": 50, "start_y": 50, "end_x": 1, "end_y": 1}, ["w0:4"]),
        ("/tap", {"x": 50}, []),
        ("/tap", {"x": 50, "y": 95}, []),
    ],
)
def test_targets(path: str, arguments: dict[str, object], expected: list[str]) -> None:
    assert [control.node.node_id for control in TREE.targets(path, arguments)] == expected


def test_a_control_has_the_texts_and_the_state_of_its_parts() -> None:
    (switch,) = TREE.targets("/tap", {"nodeId": "w0:1"})
    assert (switch.label, switch.is_checkable, switch.hides_its_state, switch.is_row) == ("Wi-Fi", True, False, False)
    (entry,) = TREE.targets("/tap", {"nodeId": "w0:3"})
    assert (entry.labels, entry.is_row) == (("Wi-Fi calling",), False)


@pytest.mark.parametrize(("height", "labels"), [(39, ("Wi-Fi",)), (40, ())])
def test_a_large_container_has_no_parts(height: int, labels: tuple[str, ...]) -> None:
    nodes = [
        {"nodeId": "w0:0", "clickable": True, "bounds": bounds(0, 0, 100, height)},
        {"nodeId": "w0:1", "text": "Wi-Fi", "bounds": bounds(0, 0, 80, 20)},
        {"nodeId": "w0:2", "text": "Invisible", "bounds": bounds(5, 5, 5, 15)},
    ]
    tree = ScreenTree.parse({"rootBounds": bounds(0, 0, 100, 100), "nodes": nodes})
    (control,) = tree.targets("/tap", {"nodeId": "w0:0"})
    assert control.labels == labels


def test_the_field_for_a_text() -> None:
    assert TREE.field is not None
    assert TREE.field.node_id == "w0:4"
    assert ScreenTree().field is None
    assert ScreenTree.parse({"nodes": "none"}) == ScreenTree()
