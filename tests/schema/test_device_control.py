"""Columns of the Device Control table against wire bridge 5.2 and the rules of the agent's consent."""

from collections.abc import Callable

import pytest

from svc_proto.schema.device_control import ControlRoute, PrivateContent, RouteEffect, ScreenGesture
from svc_proto.schema.device_control_routes import DEVICE_CONTROL

Column = Callable[[ControlRoute], bool]
TOUCHES = "tap tap_text long_press drag type swipe scroll press_key"


@pytest.mark.parametrize(
    ("column", "expected"),
    [
        (lambda row: row.is_free, "ping"),
        (lambda row: row.is_probe, "ping setup events"),
        (lambda row: not row.needs_master, "ping current_app return_to_svc return_to_hermes"),
        (lambda row: row.checks_target, "open_app send_intent broadcast share_media send_mms"),
        (lambda row: row.always_asks, "call send_sms share_media send_mms"),
        (
            lambda row: row.wakes_screen,
            f"{TOUCHES} open_app clipboard clipboard media send_intent broadcast call send_sms share_media send_mms",
        ),
        (lambda row: row.gesture is ScreenGesture.PRESS, "tap tap_text long_press"),
        (lambda row: row.gesture is ScreenGesture.STROKE, "drag swipe"),
        (
            lambda row: row.effect is RouteEffect.READS and row.method == "POST",
            "diff_screen find_nodes describe_node search_contacts",
        ),
        (lambda row: row.effect is RouteEffect.CONFIGURES, "setup events/stream"),
        (lambda row: row.content is PrivateContent.RECORDS, "clipboard location search_contacts"),
        (lambda row: row.content is PrivateContent.SCREEN, "screen find_nodes describe_node"),
        (lambda row: any(tool.needs_approval for tool in row.tools), "send_intent broadcast call send_sms send_mms"),
    ],
)
def test_columns(column: Column, expected: str) -> None:
    assert [row.path[1:] for row in DEVICE_CONTROL.values() if column(row)] == expected.split()


def test_rows_are_complete() -> None:
    for (method, path), row in DEVICE_CONTROL.items():
        assert (row.method, row.path) == (method, path)
        assert not any(word.endswith(".") for word in (row.summary, *row.sentence))
        assert (method == "GET") <= (row.effect is RouteEffect.READS)
    # what the phone checks by path alone is equal for both methods of a path
    read, write = DEVICE_CONTROL["GET", "/clipboard"], DEVICE_CONTROL["POST", "/clipboard"]
    assert read.wakes_screen == write.wakes_screen
