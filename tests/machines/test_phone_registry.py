from collections.abc import Mapping

import pytest

from svc_proto.basics.errors import Refused
from svc_proto.machines.phone_registry import MAX_STATUS, PhoneRegistry, split_selector
from tests.machines.fixed_inputs import at


def connect(
    phones: PhoneRegistry, socket: int, device_id: str = "", name: str = "", form_factor: str = "phone"
) -> int | None:
    return phones.register(
        socket,
        device_id=device_id or f"id-{socket}",
        name=name or f"Phone {socket}",
        surface="android",
        form_factor=form_factor,
        session_prefix="1c2d3e4f",
    )


def refusal(phones: PhoneRegistry, selector: str | None) -> tuple[int, str]:
    with pytest.raises(Refused) as caught:
        phones.choose(selector)
    return caught.value.status, caught.value.code


def test_first_phone_is_active_until_it_disconnects() -> None:
    phones = PhoneRegistry()
    assert refusal(phones, None) == (503, "phone_not_connected")
    assert refusal(phones, "pixel") == (404, "unknown_device")
    with pytest.raises(Refused) as caught:
        phones.status_report(None, at(0))
    assert (caught.value.status, caught.value.message) == (503, "no phone connected")
    assert caught.value.extra == {"phone_connected": False, "last_seen_seconds_ago": None}
    assert phones.devices_report(at(0)) == {
        "active_device_id": None,
        "most_recent_device_id": None,
        "devices": [],
        "count": 0,
    }
    phones = PhoneRegistry()
    for socket in (2, 4, 6):
        assert connect(phones, socket) is None
    assert len(phones) == 3
    assert phones.choose(None).socket == 2
    phones.remove(2)
    assert phones.choose(None).socket == 6  # the most recent
    phones.status(4, {}, at(1))
    connect(phones, 8)  # no phone was active, so this one is
    phones.remove(8)
    assert phones.choose(None).socket == 4  # neither is left: the newest status decides
    phones.remove(4)
    assert phones.choose(None).socket == 6  # the only one
    phones.remove(6)
    assert phones.remove(6) is None
    assert refusal(phones, None) == (503, "phone_not_connected")


def test_a_phone_is_chosen_by_name_or_as_the_active_one() -> None:
    phones = PhoneRegistry()
    connect(phones, 2, name="Pixel 7a")
    connect(phones, 4, name="Note Air", form_factor="tablet")
    assert phones.select_active("note air") == {
        "ok": True,
        "active_device_id": "id-4",
        "device_id": "id-4",
        "device_name": "Note Air",
        "alias_used": "note air",
        "aliases": ["id-4", "id4", "Note Air", "noteair", "tablet"],
    }
    assert phones.choose(None).socket == 4
    phones = PhoneRegistry()
    connect(phones, 2, device_id="5B-6e", name="Pixel 7a")
    connect(phones, 4, device_id="other", name="Onyx BOOX", form_factor="eink")
    connect(phones, 6, device_id="third", name="кухня", form_factor="xr")
    for selector in ("5B-6e", "5b6e", "Pixel 7a", "pixel7a", "PIXEL 7A", "pixel", "fold", "phone"):
        assert phones.choose(selector).socket == 2
    for selector in ("boox", "notemax", "note", "Tablet", "onyxboox"):
        assert phones.choose(selector).socket == 4
    assert phones.choose("кухня").socket == 6
    for selector in ("кух", "!!", "pix"):
        assert refusal(phones, selector) == (404, "unknown_device")
    phones = PhoneRegistry()
    connect(phones, 2)
    connect(phones, 4, device_id="phone")
    connect(phones, 6)
    phones.remove(6)
    assert phones.choose("phone").socket == 4
    assert refusal(phones, "Phone!") == (409, "ambiguous_device")


@pytest.mark.parametrize("device_id", [" ", "unknown", "None", "null"])
def test_no_id_is_no_identity(device_id: str) -> None:
    phones = PhoneRegistry()
    connect(phones, 2, device_id=device_id)
    connect(phones, 4, device_id=device_id)
    assert len(phones) == 2
    assert phones.choose("socket-4").socket == 4


def test_a_status_report_without_secrets() -> None:
    phones = PhoneRegistry()
    connect(phones, 2, device_id="a91f", name="Kitchen")
    device, bridge = {"name": "Pixel 7a", "battery_percent": 64}, {"device_control_supported": True}
    odd = {"safety": "odd", "ts": 5, "phone_connected": False, "device_name": "mine"}
    payload: dict[str, object] = {"device": device, "bridge": bridge, **odd}
    assert phones.status(2, payload, at(10))
    payload["ts"] = 6  # the registry stores a copy
    report = phones.status_report(None, at(12.5))
    expected: dict[str, object] = {"device": {"device_id": "a91f", **device}, "bridge": bridge, "safety": {}, "ts": 5}
    expected |= {"phone_connected": True, "connected": True, "active": True, "last_seen_seconds_ago": 2}
    expected |= {"device_name": "mine", "device_id": "a91f", "aliases": ["a91f", "Kitchen", "kitchen", "phone"]}
    expected |= {"session_token_prefix": "1c2d3e4f", "client_surface": "android", "device_form_factor": "phone"}
    assert report == expected
    report["bridge"] = {"device_control_supported": False}
    assert phones.status_report("kitchen", at(1))["bridge"] == {"device_control_supported": True}
    assert phones.status_report("kitchen", at(1))["last_seen_seconds_ago"] == 0
    phones = PhoneRegistry()
    connect(phones, 2)
    phones.status(2, {"device": {"token": "t"}, "password": "p"}, at(0))
    redacted: Mapping[str, object] = phones.status_report(None, at(0))
    shown = {"device_id": "id-2", "name": "Phone 2", "token": "[redacted]"}
    assert (redacted["device"], redacted["password"]) == (shown, "[redacted]")


def test_reports_of_phones_that_sent_none_or_have_left() -> None:
    phones = PhoneRegistry()
    connect(phones, 2)
    report = phones.status_report(None, at(3))
    assert (report["phone_connected"], report["last_seen_seconds_ago"]) == (True, None)
    assert (report["bridge"], report["safety"]) == ({}, {})
    phones.remove(2)
    with pytest.raises(Refused):
        phones.status_report(None, at(4))
    phones = PhoneRegistry()
    connect(phones, 2)
    phones.status(2, {"bridge": {"master_enabled": True}}, at(0))
    phones.remove(2)
    assert phones.status_report(None, at(61)) == {
        "device": {},
        "bridge": {"master_enabled": True},
        "safety": {},
        "phone_connected": False,
        "last_seen_seconds_ago": 61,
    }
    with pytest.raises(Refused) as caught:
        phones.status_report("id-2", at(61))
    assert caught.value.status == 404
    phones = PhoneRegistry()
    connect(phones, 2)
    assert not phones.status(4, {}, at(0))
    assert not phones.status(2, [], at(0))
    assert not phones.status(2, {"x": "y" * MAX_STATUS}, at(0))
    assert phones.status_report(None, at(0))["last_seen_seconds_ago"] is None


def test_a_phone_on_a_new_socket_keeps_its_own_status() -> None:
    phones = PhoneRegistry()
    for socket, device_id, battery in ((2, "a", 64), (4, "b", 9)):
        connect(phones, socket, device_id=device_id)
        phones.status(socket, {"battery": battery}, at(0))
    phones.remove(4)  # the last to disconnect is another phone
    assert connect(phones, 6, device_id="a") == 2
    assert phones.find_by_socket(2) is None
    report: Mapping[str, object] = phones.status_report("a", at(5.9))
    assert (report["battery"], report["last_seen_seconds_ago"]) == (64, 5)


def test_preferred_phones_may_be_set() -> None:
    phones = PhoneRegistry()
    for socket in (2, 4, 6):
        connect(phones, socket)
    phones.status(2, {}, at(1))
    phones.status(6, {}, at(2))
    report = phones.devices_report(at(3))
    assert (report["active_device_id"], report["most_recent_device_id"], report["count"]) == ("id-2", "id-6", 3)
    devices = report["devices"]
    assert isinstance(devices, list)
    assert [device["device_id"] for device in devices] == ["id-6", "id-2", "id-4"]
    phones = PhoneRegistry()
    for socket in (2, 4):
        connect(phones, socket)
    assert (phones.active, phones.most_recent) == ("id-2", "id-4")
    phones.set_preferred(active="id-4", most_recent="id-2")
    assert (phones.active, phones.most_recent) == ("id-4", "id-2")
    assert phones.choose(None).device_id == "id-4"
    phones.set_preferred(active="id-9", most_recent=None)
    assert (phones.active, phones.most_recent) == (None, None)
    phones.set_preferred(active=None, most_recent="id-9")
    assert (phones.active, phones.most_recent) == (None, None)
    assert [phone.device_id for phone in phones.connected()] == ["id-2", "id-4"]
    assert phones.find_by_device_id("id-2") is phones.find_by_socket(2)
    assert phones.find_by_device_id("id-9") is None


@pytest.mark.parametrize(
    ("params", "body", "selector"),
    [
        ({}, {}, None),
        ({"device": "a", "device_id": "b"}, {"device": 5}, "a"),
        ({"device": "", "deviceId": "c"}, {}, "c"),
        ({}, {"device": None, "device_id": "d"}, "d"),
        ({"device": ""}, {"device": "e"}, "e"),
    ],
)
def test_taking_the_selector(params: dict[str, object], body: dict[str, object], selector: str | None) -> None:
    taken = split_selector({"x": "1", **params}, {"y": 2, **body})
    assert taken == (selector, {"x": "1"}, {"y": 2})


def test_a_selector_is_text() -> None:
    with pytest.raises(Refused) as caught:
        split_selector({}, {"deviceId": 5})
    assert (caught.value.status, caught.value.extra) == (400, {"field": "deviceId"})
