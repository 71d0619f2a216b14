"""Nodes that share a Redis and a store, in virtual time: pair at one, be driven from another, be cut off by a third."""

from __future__ import annotations

import pytest

from fuzz.cluster import ClusterWorld


def world(nodes: int = 2, seed: int = 0) -> ClusterWorld:
    made = ClusterWorld(seed, nodes)
    made.start()
    return made


def test_a_code_of_one_node_pairs_at_another_and_is_used_up_for_all() -> None:
    scene = world()
    code = scene.code(0)
    phone = scene.phone("P", 1, code=code)
    scene.run(lambda: bool(phone.token or phone.refused))
    assert phone.token
    for node in (0, 1):
        late = scene.phone(f"late-{node}", node, code=code)
        scene.run(lambda late=late: bool(late.token or late.refused))  # type: ignore[misc]
        assert "pairing" in late.refused
        assert "invalid" in late.refused
    scene.look()


def test_a_command_reaches_the_phone_wherever_it_is() -> None:
    scene = world(3)
    phone = scene.paired("P", 1, at=0)
    for node in range(3):
        call = scene.command(node, phone.token)
        scene.run(lambda call=call: call.over)  # type: ignore[misc]
        assert call.answer.status == 200, (node, call.answer)
        assert call.answer.json["by"] == "P"
    assert len(phone.performed) == 3
    scene.look()


def test_a_revoked_session_is_cut_off_everywhere() -> None:
    scene = world(3)
    phone = scene.paired("P", 1)
    deletion = scene.revoke(2, phone.token)
    scene.run(lambda: deletion.over)
    assert deletion.answer.status == 200, deletion.answer
    gone = scene.sim.now
    scene.run(lambda: phone.closed, limit=1.0)
    assert scene.sim.now - gone < 1.0
    for node in range(3):
        assert scene.asked(node, "GET", "/ping", token=phone.token).status == 401
    assert not scene.hosts[0].store.sessions
    scene.look()


@pytest.mark.parametrize("end", ["kill", "stop"])
def test_what_waits_for_a_node_that_goes_fails_at_once(end: str) -> None:
    scene = world(3)
    phone = scene.paired("P", 1)
    phone.mute = True
    call = scene.command(0, phone.token)
    scene.run(lambda: len(phone.performed) == 1)
    gone = scene.sim.now
    getattr(scene, end)(1)
    scene.run(lambda: call.over)
    assert (call.answer.status, call.answer.json["code"]) == (502, "phone_disconnected")
    assert scene.sim.now - gone < 0.6
    back = scene.phone("P", 2, token=phone.token)
    scene.run(lambda: back.is_in)
    again = scene.command(0, phone.token)
    scene.run(lambda: again.over)
    assert again.answer.status == 200
    scene.look()
