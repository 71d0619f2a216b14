"""The ping policy: when a silent peer is pinged, and when it is dropped."""

from svc_proto.wire.keepalive import (
    FROZEN,
    KEEPALIVE_TABLE,
    Keepalive,
    KeepaliveAction,
    KeepaliveState,
    KeepaliveTrigger,
)


def test_a_peer_that_talks_is_never_pinged() -> None:
    keepalive = Keepalive(30.0, 20.0, 100.0)
    for now in (110.0, 130.0, 155.0):
        assert not keepalive.mark_received(now)
        assert keepalive.advance(now + 1) is KeepaliveAction.NOTHING
        assert keepalive.due == now + 30.0


def test_silence_is_pinged_then_dropped() -> None:
    keepalive = Keepalive(30.0, 20.0, 100.0)
    assert keepalive.advance(129.9) is KeepaliveAction.NOTHING
    assert keepalive.advance(130.0) is KeepaliveAction.PING
    assert keepalive.due == 150.0
    assert keepalive.advance(149.9) is KeepaliveAction.NOTHING
    assert keepalive.advance(150.0) is KeepaliveAction.DROP
    assert keepalive.state is KeepaliveState.LOST


def test_any_byte_after_the_ping_is_a_sign_of_life() -> None:
    keepalive = Keepalive(30.0, 20.0, 0.0)
    assert keepalive.advance(30.0) is KeepaliveAction.PING
    assert keepalive.mark_received(31.0)
    assert keepalive.state is KeepaliveState.LIVE
    assert keepalive.due == 61.0
    assert keepalive.advance(61.0) is KeepaliveAction.PING


def test_a_late_loop_still_gives_the_peer_its_patience() -> None:
    keepalive = Keepalive(30.0, 20.0, 0.0)
    assert keepalive.advance(500.0) is KeepaliveAction.PING
    assert keepalive.due == 520.0


def test_a_lost_peer_stays_lost() -> None:
    keepalive = Keepalive(1.0, 1.0, 0.0)
    keepalive.advance(1.0)
    keepalive.advance(2.0)
    keepalive.mark_received(2.5)
    assert keepalive.state is KeepaliveState.LOST
    assert keepalive.advance(keepalive.due) is KeepaliveAction.DROP


def test_a_paused_reader_pings_and_drops_no_peer() -> None:
    keepalive = Keepalive(30.0, 20.0, 0.0)
    keepalive.set_paused(True, 5.0)
    keepalive.set_paused(True, 7.0)
    for now in (15.0, 25.0, 3615.0):
        assert keepalive.due <= now
        assert keepalive.advance(now) is KeepaliveAction.PING
        assert keepalive.due == now + 10.0
    keepalive.mark_received(3620.0)  # it was in flight
    assert keepalive.due == 3630.0
    keepalive.set_paused(False, 3625.0)
    keepalive.set_paused(False, 3626.0)
    assert (keepalive.state, keepalive.due) == (KeepaliveState.LIVE, 3655.0)


def test_pausing_after_a_ping_cancels_its_deadline() -> None:
    keepalive = Keepalive(30.0, 20.0, 0.0)
    keepalive.advance(30.0)
    keepalive.set_paused(False, 31.0)
    assert (keepalive.state, keepalive.due) == (KeepaliveState.PROBED, 50.0)
    keepalive.set_paused(True, 40.0)
    assert (keepalive.state, keepalive.due) == (KeepaliveState.LIVE, 50.0)


def test_a_process_that_was_stopped_pings_before_it_drops() -> None:
    keepalive = Keepalive(30.0, 20.0, 0.0)
    assert keepalive.advance(30.0, 75.0) is KeepaliveAction.PING
    assert keepalive.due == 95.0
    assert keepalive.advance(95.0, 95.1) is KeepaliveAction.DROP
    probed = Keepalive(30.0, 20.0, 0.0)
    assert probed.advance(30.0, 30.0) is KeepaliveAction.PING
    assert probed.advance(50.0, 50.0 + FROZEN + 1.0) is KeepaliveAction.PING
    assert probed.due == 70.0 + FROZEN + 1.0
    assert probed.advance(probed.due, probed.due + FROZEN) is KeepaliveAction.DROP
    assert probed.advance(probed.due, probed.due + 1_000.0) is KeepaliveAction.DROP


def test_the_table_is_total() -> None:
    assert set(KEEPALIVE_TABLE) == {(state, trigger) for state in KeepaliveState for trigger in KeepaliveTrigger}
