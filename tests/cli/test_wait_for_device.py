from __future__ import annotations

from svc_proto.cli.operator_requests import local_relay
from svc_proto.cli.wait_for_device import wait_for_device
from svc_proto.engine.core import Engine
from svc_proto.engine.flow import Flow, sleep
from svc_proto.relay_config import RelayConfig
from tests.cli.harness import REFUSED, OneShotHarness, Reply, UpstreamRequest, as_json

RELAY = local_relay(RelayConfig())


def waited(*answers: Reply, patience: float = 60.0) -> tuple[str | None, list[UpstreamRequest], float]:
    """Wait for a device while the relay gives these answers, of which the last repeats.

    Return the device's name or None, the requests, and the seconds that passed.
    """
    left = list(answers)
    world: OneShotHarness[str | None] = OneShotHarness(
        lambda engine: plan(engine), http=lambda asked: left.pop(0) if left[1:] else left[0]
    )
    start = world.now.wall

    def plan(engine: Engine) -> Flow[str | None]:
        return (yield from wait_for_device(engine, RELAY, since=start, until=start + patience))

    return world.run(), world.asked, world.now.wall - start


def sessions(*pairs: tuple[str, float]) -> Reply:
    return as_json({"sessions": [{"device_name": name, "created_at": at} for name, at in pairs]})


def test_phone_pairs_in_time() -> None:
    start = OneShotHarness[None](lambda engine: sleep(engine, 0.0)).now.wall
    old = ("Tablet", start - 0.5)
    found, asked, took = waited(
        sessions(old), REFUSED, as_json([]), as_json({"sessions": [7]}), sessions(old, ("Pixel 8", start))
    )
    assert (found, took) == ("Pixel 8", 4.0)
    assert [each.path for each in asked] == ["/sessions"] * 5


def test_no_phone_pairs() -> None:
    found, asked, took = waited(as_json({"sessions": None}), patience=3.0)
    assert (found, took, len(asked)) == (None, 3.0, 3)
