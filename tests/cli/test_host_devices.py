import pytest

from svc_proto.cli import host_devices
from svc_proto.cli.errors import CliError
from svc_proto.cli.operator_requests import local_relay
from svc_proto.commands import Exit
from svc_proto.engine.core import Engine
from svc_proto.engine.flow import Flow, sleep
from svc_proto.relay_config import RelayConfig
from svc_proto.schema.json_object import JsonObject
from svc_proto.service_clients.relay_client import RelayClient
from tests.cli.harness import REFUSED, OneShotHarness, Reply, UpstreamRequest, as_json

NOW = 1_800_000_000.0
RELAY = RelayClient("the relay", "http://127.0.0.1:8767", local=True)


def device(name: str, prefix: str, **more: object) -> JsonObject:
    return JsonObject({"device_name": name, "token_prefix": prefix, "grants": {}, **more})


DEVICES = [
    device("Pixel 8", "1c2d3e4f", client_surface="android", last_seen=NOW - 90, expires_at=NOW + 86_400 * 3),
    device("Desk", "aaaa1111", online=True, client_surface="unknown", expires_at=None, grants={"chat": None}),
    device("Desk", "bbbb2222"),
    device("", "cccc3333"),
]


@pytest.mark.parametrize(
    ("text", "prefix"),
    [
        *((text, "1c2d3e4f") for text in ("Pixel 8", " pixel  8 ", "1c2d", "1c2d3e4f", "1c2d3e4f-0000-4000-8000-0000")),
        ("bbbb2222", "bbbb2222"),
        ("cccc", "cccc3333"),
    ],
)
def test_a_device_is_found(text: str, prefix: str) -> None:
    assert host_devices.find_device(DEVICES, text).text("token_prefix") == prefix


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("desk", "2 devices are called 'desk': name one by its prefix: aaaa1111, bbbb2222"),
        ("Pixel 9", "no paired device is called 'Pixel 9': the nearest is 'Pixel 8'; see svc devices"),
        ("1c2", "no paired device is called '1c2': see svc devices"),
        ("zzzz", "no paired device is called 'zzzz': see svc devices"),
    ],
)
def test_no_single_device(text: str, says: str) -> None:
    with pytest.raises(CliError) as caught:
        host_devices.find_device(DEVICES, text)
    assert (str(caught.value), caught.value.code) == (says, 2)


def test_rows() -> None:
    rows = host_devices.host_device_rows(DEVICES, NOW)
    assert all(len(row) == len(host_devices.HOST_DEVICE_COLUMNS) for row in rows)
    assert rows[0] == ("Pixel 8", "1c2d3e4f", "1m ago", "in 3d", "android", "none")
    assert rows[1] == ("Desk", "aaaa1111", "online", "never", "-", "chat=never")
    assert rows[3][0] == "unknown"
    assert host_devices.describe_device(DEVICES[0], NOW) == "Pixel 8 (1c2d3e4f, android, 1m ago)"
    assert host_devices.describe_device(DEVICES[2], NOW) == "Desk (bbbb2222)"


def relay(asked: UpstreamRequest) -> Reply:
    if asked.method == "GET":
        return as_json({"sessions": DEVICES})
    return as_json({"ok": True, "token_prefix": "1c2d3e4f", "revoked": "1c2d3e4f", "device_name": "Kitchen"})


def test_devices_are_listed_connected_ones_first() -> None:
    world = OneShotHarness(lambda engine: host_devices.list_host_devices(engine, RELAY), http=relay)
    assert [each.text("token_prefix") for each in world.run()] == ["aaaa1111", "1c2d3e4f", "bbbb2222", "cccc3333"]


def test_a_device_is_revoked_by_its_name() -> None:
    world = OneShotHarness(lambda engine: host_devices.revoke_device(engine, RELAY, "pixel 8"), http=relay)
    found, answer = world.run()
    assert (found.text("device_name"), answer.text("revoked")) == ("Pixel 8", "1c2d3e4f")
    assert [f"{asked.method} {asked.path}" for asked in world.asked] == ["GET /sessions", "DELETE /sessions/1c2d3e4f"]


def test_a_device_is_changed_by_its_name() -> None:
    change: dict[str, object] = {"device_name": "Kitchen"}
    world = OneShotHarness(lambda engine: host_devices.change_device(engine, RELAY, "Pixel 8", change), http=relay)
    found, answer = world.run()
    assert (found.text("device_name"), answer.text("device_name")) == ("Pixel 8", "Kitchen")
    _, asked = world.asked
    assert (asked.method, asked.path, asked.json) == ("PATCH", "/sessions/1c2d3e4f", change)


def test_refusals_are_explained() -> None:
    answer = as_json({"error": "loopback only"}, 403)
    refused = OneShotHarness(lambda engine: host_devices.list_host_devices(engine, RELAY), http=answer)
    assert refused.fails() == Exit(1, "the relay takes this only from its own host: loopback only (status 403)")
    gone = OneShotHarness(
        lambda engine: host_devices.change_device(engine, RELAY, "Pixel 8", {"ttl_seconds": 60}),
        http=lambda asked: relay(asked) if asked.method == "GET" else as_json({"error": "no"}, 404),
    )
    assert gone.fails() == Exit(1, "its session has ended meanwhile: see svc devices")


# --- a new device -----------------------------------------------------------------------------------------------------


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
        return (yield from host_devices.wait_for_device(engine, RELAY, since=start, until=start + patience))

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
