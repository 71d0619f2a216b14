"""Messages of phones that are not strict JSON: results of commands and notifications are read leniently.

A result that cannot be read fails its command at once. Such messages of other channels are ignored.
"""

from __future__ import annotations

import pytest

from svc_proto.commands import Level
from tests.relay.harness import PairedPhone, RelayHarness
from tests.relay.phone_client import PhoneClient


def respond(phone: PhoneClient, result: str) -> None:
    """Answer the phone's one command; `result` is inserted into the message unchanged."""
    identity = phone.command()["request_id"]
    payload = f'{{"request_id":"{identity}","status":200,"result":{result}}}'
    phone.text(f'{{"channel":"bridge","type":"bridge.response","id":"r","payload":{payload}}}')


@pytest.mark.parametrize(
    ("text", "result"),
    [
        (r'{"text":"cut \ud83d"}', {"text": "cut \ufffd"}),
        ('{"x":NaN,"y":-Infinity,"z":1e999}', {"x": None, "y": None, "z": None}),
        ('{"a":1,"a":2}', {"a": 2}),
        ('{"a":"x\ny"}', {"a": "x\ny"}),
    ],
)
def test_phone_results_are_read_leniently(book: RelayHarness, paired: PairedPhone, text: str, result: object) -> None:
    call = book.call("GET", "/ping", token=paired.token)
    respond(paired.phone, text)
    assert (call.result.status, call.result.json) == (200, result)
    assert "a peer deviates from JSON" in book.events(Level.WARNING)


@pytest.mark.parametrize("text", ['{"a":}', "[" * 70 + "]" * 70, '{"a":1'])
def test_unreadable_phone_result_fails_its_command_at_once(book: RelayHarness, paired: PairedPhone, text: str) -> None:
    call = book.call("GET", "/ping", token=paired.token)
    respond(paired.phone, text)
    assert call.result.status == 502
    assert call.result.json["error"].startswith("the phone's answer cannot be read: ")
    assert paired.phone.is_open


def test_notifications_are_read_leniently_and_other_channels_are_not(book: RelayHarness) -> None:
    phone = book.pair().phone
    posted = '{"package":"a.b","title":"x \\ud83d","title":"y \\ud83d","text":"z"}'
    phone.text(f'{{"channel":"notifications","type":"notification.posted","payload":{posted}}}')
    assert "ignored notification" not in book.events(Level.DEBUG)
    (row,) = book.request("GET", "/notifications/recent").json["notifications"]
    assert row["title"] == "y \ufffd"
    for text in ('{"channel":"system","type":"ping","payload":{"ts":NaN}}', '{"type":"bridge.response","x":}', "[NaN]"):
        phone.text(text)
    assert phone.envelopes() == []
