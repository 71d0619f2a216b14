"""A device that pairs again: its earlier session ends, unless the code keeps it."""

from __future__ import annotations

import pytest

from tests.relay.harness import RelayHarness


@pytest.mark.parametrize("device_id", ["d-1", "unknown"])
@pytest.mark.parametrize("keep", [False, True])
def test_a_device_that_pairs_again_ends_its_earlier_session(device_id: str, keep: bool) -> None:
    book = RelayHarness()
    bystander = book.pair(device_id="d-2")
    first = book.pair(device_id=device_id)
    second = book.pair(operator={"keep_earlier": keep}, device_id=device_id)
    ended = not keep and device_id == "d-1"
    left = {each["token_prefix"] for each in book.sessions()}
    assert left == {bystander.prefix, second.prefix, *(() if ended else (first.prefix,))}
    assert len(book.store) == len(left)
    assert first.phone.is_open is not ended
    assert second.phone.is_open
    assert book.request("GET", "/sessions", token=first.token).status == (401 if ended else 200)
    if ended:
        (message,) = [each for each in first.phone.envelopes() if each["type"] == "error"]
        assert message["payload"]["message"] == "the device has paired again"
