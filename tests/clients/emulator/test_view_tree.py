import struct
import zlib
from typing import Any

from clients.phone.emulator.actions import GoBack, SelectEntry
from clients.phone.emulator.events import EventBuffer, EventKind
from clients.phone.emulator.png import draw
from clients.phone.emulator.view_tree import (
    Bounds,
    ViewNode,
    Window,
    bounding_box,
    find_node,
    hit_test,
    list_nodes,
    traverse,
)
from svc_proto.basics.moment import Moment


def node(text: str | None = None, *children: ViewNode, bounds: Bounds = Bounds(0, 0, 10, 10)) -> ViewNode:  # noqa: B008 - a value
    return ViewNode(class_name="android.view.View", bounds=bounds, text=text, children=children)


def test_ids_count_interesting_nodes_over_all_windows() -> None:
    top = Window("a", node(None, node("one", node("two")), node("  "), node("x", bounds=Bounds(5, 5, 5, 9))))
    below = Window("b", node("three", node("four")))
    assert [(seen.node_id, seen.node.text) for seen in traverse((top, below)) if seen.node_id] == [
        ("w0:0", "one"),
        ("w0:1", "two"),
        ("w1:2", "three"),
        ("w1:3", "four"),
    ]
    two = find_node((top, below), "w0:1")
    assert two is not None
    assert [parent.text for parent in two.parents] == ["one", None]
    for unknown in ("w0:2", "w1:0", "w0:01", "W0:0", "", "w0"):
        assert find_node((top, below), unknown) is None


def test_interesting_nodes() -> None:
    shown = {"description": "d", "press": GoBack(), "hold": SelectEntry("k"), "scrollable": True, "field": "k"}
    for name, value in shown.items():
        member: dict[str, Any] = {name: value}
        assert ViewNode(class_name="v", bounds=Bounds(0, 0, 1, 1), **member).interesting
        assert not ViewNode(class_name="v", bounds=Bounds(0, 0, 0, 1), **member).interesting
    assert not ViewNode(class_name="v", bounds=Bounds(0, 0, 1, 1)).interesting


def test_a_list_ends_at_512_nodes() -> None:
    exactly = Window("a", node(None, *(node(str(n)) for n in range(512))))
    assert (len(list_nodes((exactly,))[0]), list_nodes((exactly,))[1]) == (512, False)
    more = Window("a", node("more"))
    assert (len(list_nodes((exactly, more))[0]), list_nodes((exactly, more))[1]) == (512, True)


def test_bounds() -> None:
    bounds = Bounds(10, 20, 30, 60)
    assert (bounds.width, bounds.height, bounds.center) == (20, 40, (20, 40))
    assert bounds.contains(10, 20)
    assert not bounds.contains(30, 60)
    assert bounds.clip(Bounds(50, 50, 90, 90)).empty
    other = Window("b", node(bounds=Bounds(0, 30, 20, 90)))
    assert bounding_box((Window("a", node(bounds=bounds)), other)) == Bounds(0, 20, 30, 90)


def test_a_touch_reaches_the_innermost_node_that_reacts() -> None:
    inner = ViewNode(class_name="i", bounds=Bounds(0, 0, 5, 5), press=GoBack(), enabled=False)
    outer = ViewNode(
        class_name="o", bounds=Bounds(0, 0, 10, 10), press=GoBack(), hold=SelectEntry("k"), children=(inner,)
    )
    window = Window("a", node(None, outer))
    assert hit_test(window, 1, 1) is outer
    assert hit_test(window, 1, 1, hold=True) is outer
    assert hit_test(window, 1, 1, scrollable=True) is None
    assert hit_test(window, 11, 1) is None


def decode(data: bytes) -> tuple[int, int, list[bytes]]:
    """Decode a PNG of the emulator: return its width, height and rows of palette indices; assert that it is valid."""
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    chunks: dict[bytes, bytes] = {}
    rest = data[8:]
    while rest:
        (length,) = struct.unpack(">I", rest[:4])
        kind, body = rest[4:8], rest[8 : 8 + length]
        assert struct.unpack(">I", rest[8 + length : 12 + length]) == (zlib.crc32(kind + body),)
        chunks[kind] = body
        rest = rest[12 + length :]
    assert list(chunks) == [b"IHDR", b"PLTE", b"IDAT", b"IEND"]
    width, height, depth, colour, *methods = struct.unpack(">IIBBBBB", chunks[b"IHDR"])
    assert (depth, colour, methods) == (8, 3, [0, 0, 0])
    raw = zlib.decompress(chunks[b"IDAT"])
    assert len(raw) == height * (width + 1)
    rows = [raw[start : start + width + 1] for start in range(0, len(raw), width + 1)]
    assert all(row[0] == 0 for row in rows)
    assert max(raw) < len(chunks[b"PLTE"]) // 3
    return width, height, [row[1:] for row in rows]


def test_the_picture_is_a_png_of_the_nodes() -> None:
    full = Bounds(0, 0, 1080, 2400)
    kinds = (
        ViewNode(class_name="e", bounds=Bounds(0, 0, 200, 100), field="k"),
        ViewNode(class_name="s", bounds=Bounds(0, 100, 200, 200), text="on", checked=True),
        ViewNode(class_name="s", bounds=Bounds(0, 200, 200, 300), text="off", checked=False),
        ViewNode(class_name="l", bounds=Bounds(0, 300, 200, 400), scrollable=True),
        ViewNode(class_name="b", bounds=Bounds(0, 400, 200, 500), press=GoBack()),
        ViewNode(class_name="g", bounds=Bounds(0, 500, 200, 600), text="group", children=(node(),)),
        ViewNode(class_name="t", bounds=Bounds(0, 600, 1000, 700), description="text"),
        ViewNode(class_name="t", bounds=Bounds(2000, 600, 2004, 700), text="outside"),
    )
    window = Window("a", ViewNode(class_name="r", bounds=full, children=kinds))
    width, height, rows = decode(draw((window,)))
    assert (width, height) == (108, 240)
    assert [rows[y][5] for y in (5, 15, 25, 35, 45, 55, 65, 200)] == [5, 6, 7, 5, 4, 2, 3, 1]
    assert decode(draw((window,), screen_on=False))[2] == [bytes(108)] * 240
    assert draw((window,)) == draw((window,))


def test_the_event_buffer() -> None:
    events, now = EventBuffer(), Moment(0.0, 1000.0)
    events.record(EventKind.CLICK, "p", now)
    assert events.newest(50, 0) == []
    events.switch(True)
    events.record(EventKind.CLICK, "p", now, text=" x" * 200, class_name="c", description="d")
    events.record(EventKind.CLICK, "p", now.at(0.099))  # too soon
    events.record(EventKind.SCROLL, "p", now.at(0.05), text=" ")  # of another type
    events.record(EventKind.CLICK, "q", now.at(0.06))  # of another package
    first, *others = events.newest(50, 0)
    seen = {"package_name": "p", "class_name": "c", "text": "x " * 100, "content_description": "d"}
    assert first == {"timestamp": 1_000_000, "event_type": "click", "source": "TYPE_VIEW_CLICKED", **seen}
    assert [entry["timestamp"] for entry in others] == [1_000_050, 1_000_060]
    assert "text" not in others[0]
    assert len(events.newest(50, 1_000_050)) == 1
    assert events.newest(1, 0) == others[-1:]
    events.switch(True)
    assert len(events.newest(50, 0)) == 3
    for step in range(600):
        events.record(EventKind.CLICK, "p", now.at(1.0 + step))
    assert len(events.newest(500, 0)) == 500
    events.switch(False)
    assert events.newest(50, 0) == []
