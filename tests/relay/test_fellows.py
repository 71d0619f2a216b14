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


def test_what_was_taken_back_while_a_node_was_parted_is_so_there_too() -> None:
    scene = world(3)
    phone = scene.paired("P", 1)
    scene.sim.run_for(0.1)
    scene.part(0)
    scene.sim.run_for(5.0)
    patch = scene.asked(2, "PATCH", f"/sessions/{phone.token}", body={"grants": {"bridge": False}})
    assert patch.status == 200, patch.answer
    assert scene.asked(1, "GET", "/ping", token=phone.token).status == 403
    assert scene.asked(0, "GET", "/ping", token=phone.token).status == 503  # it was not heard there
    scene.heal()
    scene.sim.run_for(1.0)
    assert scene.asked(0, "GET", "/ping", token=phone.token).status == 403
    scene.look()


def test_without_redis_nodes_serve_what_they_have_and_refuse_the_rest() -> None:
    scene = world(2)
    phone, other = scene.paired("P", 0), scene.paired("Q", 1)
    code = scene.code(0)
    scene.kill_redis()
    scene.sim.run_for(1.0)
    mine = scene.asked(0, "GET", "/ping?device=device-P", token=other.token)
    assert mine.status == 200
    for node, method, path, token in (
        (0, "GET", "/ping?device=device-Q", phone.token),
        (0, "POST", "/pairing", ""),
        (1, "DELETE", f"/sessions/{other.token}", ""),
    ):
        answer = scene.asked(node, method, path, token=token).answer
        assert (answer.status, answer.json["code"]) == (503, "cluster_unavailable"), path
    late = scene.phone("R", 1, code=code)
    scene.run(lambda: bool(late.refused))
    assert "pairing" not in late.refused
    scene.restart_redis()
    scene.sim.run_for(1.0)
    assert scene.asked(0, "GET", "/ping", token=other.token).status == 401  # by now everybody knows
    assert scene.paired("S", 0, at=1)
    scene.look()


def test_the_last_commands_of_all_nodes_are_told_together() -> None:
    scene = world(3)
    phone = scene.paired("P", 1)
    for node in range(3):
        call = scene.command(node, phone.token)
        scene.run(lambda call=call: call.over)  # type: ignore[misc]
    for node in range(3):
        rows = scene.asked(node, "GET", "/bridge/activity").answer.json["activity"]
        assert [row["decision"] for row in rows] == ["executed"] * 3
        assert [row["sent_at"] for row in rows] == sorted((row["sent_at"] for row in rows), reverse=True)
    scene.look()


def test_five_failures_anywhere_block_an_address_everywhere() -> None:
    scene = world(2)
    for n in range(5):
        phone = scene.phone(f"guess-{n}", n % 2, token="11111111-1111-4111-8111-111111111111")
        scene.run(lambda phone=phone: bool(phone.refused))  # type: ignore[misc]
    scene.sim.run_for(0.1)
    for node in range(2):
        assert scene.asked(node, "GET", "/health").status == 200
        late = scene.phone("late", node, token="11111111-1111-4111-8111-111111111111")
        scene.run(lambda late=late: late.closed or bool(late.refused))  # type: ignore[misc]
        assert late.talker is not None
        assert late.talker.status == 429
    scene.look()
