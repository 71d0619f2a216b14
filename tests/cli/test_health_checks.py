"""A table of planted faults and the codes of their health checks; a healthy host has no problem."""

from typing import Any

import pytest
from attrs import evolve

from svc_proto.cli.health_checks import CHECKS, run_health_checks
from svc_proto.cli.health_facts import (
    CertificateFacts,
    DeviceFacts,
    Finding,
    HostFacts,
    ModelFacts,
    RouteFacts,
    ServerFacts,
)
from svc_proto.service_clients.host_addresses import HostAddresses, parse_addresses

NOW = 1_800_000_000.0
DAY = 86_400.0
MIB = 1024 * 1024
URL = "http://127.0.0.1:11434/v1"


def addresses(*rows: tuple[str, str]) -> HostAddresses:
    return HostAddresses(parse_addresses([{"interface": interface, "address": text} for interface, text in rows]))


def server(role: str, **more: Any) -> ServerFacts:
    ports = {"relay": 8767, "api": 8642, "dashboard": 9119}
    host = "127.0.0.1" if role == "dashboard" else "0.0.0.0"
    return ServerFacts(**{"role": role, "port": ports[role], "host": host, "version": "1.0.0", **more})


RELAY, API, BOARD = (server(role) for role in ("relay", "api", "dashboard"))
LAN = addresses(("lo", "127.0.0.1"), ("wlan0", "192.168.1.20"))
KEY = "sk-01234sk-01234"  # the shortest and simplest that is strong enough
PHONE = DeviceFacts(
    name="Pixel 8",
    seen_at=NOW,
    expires_at=NOW + 3 * DAY,
    status={"bridge": {"master_enabled": True, "accessibility_granted": True, "device_control_supported": True}},
)
SIZE = 16_384  # tokens of the model's context
MODEL = ModelFacts(
    base_url=URL, name="llama3.2", listed=("llama3.2:latest",), has_tools=True, context=SIZE, configured_context=SIZE
)
WELL = HostFacts(
    now=NOW,
    version="1.0.0",
    home="/h",
    servers=(RELAY, API, BOARD),
    addresses=LAN,
    routes=(RouteFacts("lan", "ws://192.168.1.20:8767"),),
    model=MODEL,
    disk_free=5000 * MIB,
    database="/h/svc.db",
    newest_file_at=NOW - 1,
    foreign_clock=NOW,
    clock_source=URL,
    key=KEY,
    devices=(PHONE,),
    backup_at=NOW - 30 * DAY,
    home_since=NOW - 90 * DAY,
)


def phone(**status: object) -> HostFacts:
    bridge = {"master_enabled": True, "accessibility_granted": True, **status}
    return evolve(WELL, devices=(evolve(PHONE, status={"bridge": bridge}),))


def certificate(**more: Any) -> HostFacts:
    return evolve(WELL, certificates=(CertificateFacts(role="relay", path="/c.pem", **more),))


def model(**more: Any) -> HostFacts:
    return evolve(WELL, model=evolve(MODEL, **more))


def public(subject: str, verdict: str = "failure") -> HostFacts:
    return evolve(WELL, public=(Finding(subject, verdict, "a text"),))


OUTSIDE = "wss://home.example/relay"
BEHIND = (server("relay", host="127.0.0.1"), server("api", host="127.0.0.1"), BOARD)
OPEN_BOARD = evolve(WELL, servers=(RELAY, API, server("dashboard", host="0.0.0.0")))
PLANTED: dict[str, HostFacts] = {
    "relay_down": evolve(WELL, servers=(server("relay", runs=False), API, BOARD), routes=()),
    "api_down": evolve(WELL, servers=(RELAY, server("api", runs=False), BOARD)),
    "dashboard_down": evolve(WELL, servers=(RELAY, API, server("dashboard", runs=False))),
    "server_silent": evolve(WELL, servers=(RELAY, server("api", answers=False), BOARD)),
    "port_taken": evolve(WELL, servers=(RELAY, server("api", runs=False, taken=True), BOARD)),
    "version_differs": evolve(WELL, servers=(RELAY, server("api", version="0.9.0"), BOARD)),
    "no_address": evolve(WELL, addresses=addresses(("lo", "127.0.0.1"), ("eth0", "fe80::1"))),
    "poor_address": evolve(WELL, addresses=addresses(("tun0", "10.5.0.2"))),
    "relay_local_only": evolve(WELL, servers=BEHIND),
    "api_local_only": evolve(WELL, servers=(RELAY, server("api", host="localhost"), BOARD)),
    "route_dead": evolve(WELL, routes=(RouteFacts("lan", "ws://192.168.1.20:8767", "connection refused"),)),
    "public_unreachable": evolve(public(OUTSIDE), routes=(RouteFacts("public", OUTSIDE, "no route"),)),
    "public_plain": public("encryption"),
    "public_open": public("local routes"),
    "public_websocket": public("WebSocket", "warning"),
    "proxy_not_trusted": public("forwarded headers"),
    "certificate_unusable": certificate(problem="the key does not match"),
    "certificate_expired": certificate(days_left=0.0),
    "certificate_expires": certificate(days_left=13.0),
    "certificate_name": evolve(
        certificate(names=("other.example",)), routes=(RouteFacts("public", "wss://home.example:443"),)
    ),
    "model_url_missing": evolve(WELL, model=ModelFacts(name="llama3.2")),
    "model_unreachable": model(problem="connection refused", status=0, listed=()),
    "model_key_refused": model(status=401, listed=()),
    "model_odd_answer": model(status=500, listed=()),
    "model_name_missing": model(name="", listed=("a", "b")),
    "model_name_unknown": model(name="lama3.2"),
    "model_without_tools": model(has_tools=False),
    "model_context_small": model(configured_context=SIZE - 1),
    "model_context_false": model(configured_context=SIZE + 1),
    "model_differs": model(learned=("takes no tools",)),
    "model_missing": evolve(WELL, model=ModelFacts()),
    "disk_full": evolve(WELL, disk_free=MIB),
    "disk_low": evolve(WELL, disk_free=100 * MIB),
    "home_not_writable": evolve(WELL, home_problem="read-only file system"),
    "home_readable": evolve(WELL, open_files=(".env",)),
    "database_broken": evolve(WELL, database_problem="database is locked"),
    "clock_behind": evolve(WELL, newest_file_at=NOW + 300),
    "clock_off": evolve(WELL, foreign_clock=NOW - 300),
    "backup_missing": evolve(WELL, backup_at=None, home_since=NOW - 30 * DAY),
    "backup_old": evolve(WELL, backup_at=NOW - 30 * DAY - 1),
    "key_missing": evolve(WELL, key=""),
    "key_weak": evolve(WELL, key="aaaaaaaaaaaaaaaaaaaa"),
    "password_weak": evolve(OPEN_BOARD, dashboard_password="abcabcabc"),
    "brand_differs": evolve(WELL, brand="hermes"),
    "env_unreadable": evolve(WELL, env_problem="cannot read /h/.env: line 3: a quote without its end"),
    "env_unknown": evolve(WELL, unknown_variables=("RELAY_HSOT is no variable",)),
    "config_wrong": evolve(WELL, config_problems=("config.yaml line 3: tts is text",)),
    "path_missing": evolve(WELL, missing_paths=("RELAY_TERMINAL_SHELL=/nope",)),
    "phone_missing": evolve(WELL, devices=()),
    "phone_store_build": phone(device_control_supported=False),
    "phone_control_off": phone(master_enabled=False),
    "phone_accessibility_off": phone(accessibility_granted=False),
    "phone_battery": evolve(WELL, devices=(evolve(PHONE, status={"device": {"battery_optimized": True}}),)),
    "session_expires": evolve(WELL, devices=(evolve(PHONE, expires_at=NOW + 3 * DAY - 1),)),
    "phone_offline": evolve(WELL, devices=(evolve(PHONE, is_online=False, status={}),)),
    "phone_away": evolve(WELL, devices=(PHONE, evolve(PHONE, is_online=False, seen_at=NOW - 7 * DAY - 1, status={}))),
}


def found(facts: HostFacts) -> set[str]:
    return {result.check.code for result in run_health_checks(facts) if result.text is not None}


@pytest.mark.parametrize("code", PLANTED)
def test_each_planted_fault_is_named_by_its_code_alone(code: str) -> None:
    assert found(PLANTED[code]) == {code}


def test_each_check_has_a_planted_fault() -> None:
    assert [check.code for check in CHECKS if check.code not in PLANTED] == []
    assert len({check.code for check in CHECKS}) == len(CHECKS) >= 30
    assert all(check.title and check.looked_at and check.remedy for check in CHECKS)


SIX = (server("relay", host="::"), server("api", host="::"), BOARD)
HEALTHY: dict[str, HostFacts] = {
    "local network": WELL,
    "first day": evolve(WELL, model=MODEL, backup_at=None, home_since=NOW - DAY),
    "VPN beside the LAN": evolve(WELL, addresses=addresses(("tun0", "10.5.0.2"), ("wlan0", "192.168.1.20"))),
    "container with a public address": evolve(WELL, is_container=True, has_outside_route=True),
    "behind a proxy": evolve(WELL, servers=BEHIND, has_outside_route=True, routes=(), public=(Finding("x", "ok", ""),)),
    "mesh alone": evolve(WELL, addresses=addresses(("tailscale0", "100.64.0.7")), has_outside_route=True),
    "IPv6 alone": evolve(WELL, addresses=addresses(("wlan0", "fd00::20")), servers=SIX),
    "no default route": evolve(WELL, addresses=addresses(("wlan9", "192.168.50.1"))),
    "own server of another model": model(listed=(), status=404),
    "one model and no name": model(name="", listed=("only",)),
    "no API by choice": evolve(WELL, servers=(RELAY, server("api", runs=False, wanted=False), BOARD), key=None),
    "a desktop and a phone": evolve(WELL, devices=(PHONE, DeviceFacts(name="Laptop", is_phone=False, is_online=False))),
    "a session that ends now": evolve(WELL, devices=(evolve(PHONE, expires_at=NOW),)),
    "certificates": certificate(days_left=14.0, names=("192.168.1.20",)),
    "certificate of a domain": evolve(
        certificate(days_left=60.0, names=("*.example", "192.168.1.20")),
        routes=(RouteFacts("public", "wss://home.example"), RouteFacts("lan", "wss://192.168.1.20:8767")),
    ),
    "relay that does not tell": evolve(WELL, devices=None, key=None),
    "unknown disk, clock and database": evolve(
        WELL, disk_free=None, newest_file_at=None, foreign_clock=None, home_since=None
    ),
    "strong password": evolve(OPEN_BOARD, dashboard_password="abcdabcd"),
    "two relays of other homes": evolve(WELL, servers=()),
}


@pytest.mark.parametrize("name", HEALTHY)
def test_no_false_alarm(name: str) -> None:
    results = run_health_checks(HEALTHY[name])
    assert [result.check.code for result in results if result.is_problem] == []


def test_nothing_runs() -> None:
    servers = tuple(server(role, runs=False, answers=False) for role in ("relay", "api", "dashboard"))
    facts = evolve(WELL, servers=servers, routes=(), devices=None, key=None)
    assert found(facts) == {"relay_down"}
