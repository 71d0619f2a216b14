import json
import re
from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from svc_proto.agent.tools.phone_screen import TEXT_LIMIT, PhoneScreen, parse_screen
from svc_proto.agent.tools.phone_screen_text import EMPTY, LOCKED, SCREEN_BLOCK, quote, screen_head, screen_lines
from svc_proto.schema.json_object import JsonObject
from tests.agent.tools.test_phone_screen import BUTTON, FIELD, ROW, button, screen, text


def line(node: Mapping[str, object], *, bounds: bool = False) -> str:
    (found,) = screen_lines(screen(node), bounds=bounds)
    return found


def whole(found: PhoneScreen) -> str:
    return "\n".join([screen_head(412, found), *screen_lines(found)])


@pytest.mark.parametrize(
    ("node", "expected"),
    [
        (text("Inbox"), '0 "Inbox"'),
        (button("Send"), '0 button "Send"'),
        ({**button("a"), "enabled": False, "selected": True}, '0 button "a" selected disabled'),
        ({"text": "Hold", "longClickable": True}, '0 button "Hold" hold'),
        ({"text": "Both", "longClickable": True, "clickable": True}, '0 button "Both"'),
        ({"text": "a", "contentDescription": "a"}, '0 "a"'),
        ({"text": "a", "contentDescription": "b"}, '0 "a" "b"'),
        ({**BUTTON, "viewId": "a.b:id/send"}, "0 button #send"),
        (BUTTON, "0 button @500,50"),
        ({**FIELD, "hintText": "To", "text": "To"}, '0 field "" "To"'),
        ({**FIELD, "hintText": "To", "text": "Ada", "contentDescription": "To"}, '0 field "Ada" "To"'),
        ({**FIELD, "text": "•••", "password": True, "focused": True}, '0 password "•••" focused'),
        ({"className": "android.widget.Switch", "text": "Wi-Fi"}, '0 switch "Wi-Fi" state unknown'),
        ({"className": "a.Switch", "text": "Wi-Fi", "checkable": True, "checked": False}, '0 switch "Wi-Fi" off'),
        ({"className": "a.CheckBox", "text": "Tea", "checkable": True, "checked": True}, '0 checkbox "Tea" on'),
        ({"className": "a.SeekBar", "contentDescription": "Volume", "value": "4"}, '0 slider "Volume" value 4'),
        ({"scrollable": True, "viewId": "a:id/list", "more": "below"}, "0 scroll #list more: below"),
        ({"scrollable": True, "className": "android.webkit.WebView", "text": "Page"}, '0 web "Page" scroll'),
        (text('a "quoted"\nline'), r'0 "a \"quoted\"\nline"'),
    ],
)  # fmt: skip
def test_lines(node: Mapping[str, object], expected: str) -> None:
    assert line(node) == expected


def test_rows_and_their_bounds() -> None:
    assert line(button("Send"), bounds=True) == '0 button "Send" [0,0,1000,100]'
    assert line(BUTTON, bounds=True) == "0 button [0,0,1000,100]"
    area = {"at": (0, 0, 1000, 200)}
    parts = ({**text("Ada"), "at": (0, 0, 500, 100)}, {**text("Lunch?"), "selected": True, "at": (0, 100, 500, 200)})
    assert screen_lines(screen({**ROW, **area}, *parts)) == ['0 button "Ada" "Lunch?" selected']


def test_heads() -> None:
    head = screen_head(7, screen(text("a"), locked=True), settled=False)
    assert head == "screen 7 com.example.app 1000x2000 locked settled: false"
    moved = parse_screen(JsonObject({"rootBounds": {"left": 640, "top": 79, "right": 1898, "bottom": 965}}))
    assert screen_head(8, moved) == "screen 8 unknown app 1258x886 at 640,79"
    assert screen_lines(screen()) == [EMPTY]
    assert screen_lines(screen(text("Locked"), locked=True)) == [LOCKED, '0 "Locked"']
    assert screen_lines(screen(text("a"), truncated=True))[-1].startswith("(the phone listed 1 nodes and left out more")
    assert quote("x" * (TEXT_LIMIT - 1)).endswith('x"')
    assert line(text("x" * TEXT_LIMIT)).endswith('x" (cut)')
    assert line({**text("x" * TEXT_LIMIT), "textLength": 4_000}).endswith('x" (cut, 4000 characters)')
    assert line({**FIELD, "text": "x" * TEXT_LIMIT, "textLength": 4_000}).endswith('x" (cut, 4000 characters)')


def test_a_keyboard_is_one_line_and_windows_are_named() -> None:
    ime = "com.google.android.inputmethod.latin"
    keys = [{**button(key), "viewId": f"{ime}:id/key", "at": (0, 1500, 10, 1600)} for key in ("a", "b", "Search")]
    behind = {**FIELD, "text": "tea", "nodeId": "w1:3", "viewId": "com.shop:id/q"}
    more = {**text("x"), "nodeId": "w2:4"}
    assert screen_lines(screen(*keys, behind, more, packageName=ime)) == [
        "(keyboard, 3 keys, Enter is 2)", "(window behind, com.shop)", '3 field "tea"',
        "(window behind, unknown app)", '4 "x"',
    ]  # fmt: skip
    assert screen_lines(screen(keys[0], behind, packageName=ime))[0] == "(keyboard, 1 keys)"


@given(st.lists(st.tuples(st.text(max_size=12), st.booleans()), max_size=8))
def test_no_text_of_others_begins_a_line_and_all_are_there(rows: list[tuple[str, bool]]) -> None:
    found = screen(*(button(words) if taps else text(words) for words, taps in rows))
    result = whole(found)
    lines = result.split("\n")[1:]
    assert len(lines) == max(1, len(rows))
    assert all(re.match(r"\d+( |$)|\(", each) for each in lines)
    told = [json.loads(each) for each in re.findall(r'"(?:[^"\\]|\\.)*"', "\n".join(lines)) if rows]
    assert told == [words for words, _ in rows if words]
    block = SCREEN_BLOCK.search(f"before\n{result}\nafter")
    assert block is not None
    assert (block[0], block[1]) == (result, "412")
