"""Tests of `svc phone`: it pairs by itself, prints the address of its screen, and keeps its session."""

import json
import signal

from runtimes.service_home.server_registry import lock_home
from svc_proto.phone.screen_server import PHONE_SESSION
from svc_proto.service_clients.phone_screen_endpoint import PHONE_SCREEN_FILE
from tests.clients.commands.command_process import CommandHome
from tests.servers.program_process import LOCAL, call, ports_of, running


def talk(dashboard: int) -> list[dict[str, str]]:
    """Return the chat of the phone's screen, by requests to the dashboard, once the agent has answered."""
    tag = ""
    while True:
        screen = call(dashboard, "GET", f"/api/phone/screen?seen={tag}").body
        lines: list[dict[str, str]] = screen["talk"]
        if lines[-1]["kind"] == "agent" and not screen["awaits"]:
            return lines
        tag = screen["tag"]


def test_a_running_phone_is_found_before_a_code_is_requested(lonely: CommandHome) -> None:
    """A running phone is reported before `svc phone` requests a code, which needs a relay."""
    held = lock_home(lonely.home / "svc", "phone", version="1")
    try:
        assert "runs already" in lonely.run("svc", "phone").problem
    finally:
        held.release()
    assert "cannot be reached" in lonely.run("svc", "phone").problem


def test_a_phone_of_this_host(lonely: CommandHome) -> None:
    home = lonely.home / "svc"
    with running(lonely.home, "servers", *LOCAL, "--no-qr") as servers:
        ports = ports_of(servers)
        env = {name: value for name, value in lonely.env.items() if name.startswith("SVC_")}
        for start in ("first", "again"):
            with running(lonely.home, "clients.commands.svc phone", "--name", "Kitchen", env=env) as phone:
                phone.line(rf"^Its screen: http://127\.0\.0\.1:{ports['dashboard']}/#phone$")
                phone.line("^online$")
                sessions = call(ports["relay"], "GET", "/sessions").body["sessions"]
                session = next(each for each in sessions if each["client_surface"] == "android")  # beside the agent's
                assert (session["device_name"], session["online"]) == ("Kitchen", True), start
                assert "terminal" not in session["grants"]
                screen = call(ports["dashboard"], "GET", "/api/phone/screen").body
                assert (screen["name"], screen["device_control"]) == ("Kitchen", True)
                if start == "first":
                    asked = call(ports["dashboard"], "POST", "/api/phone/say", {"text": "/phone ping"})
                    assert asked.status == 200
                    answers = talk(ports["dashboard"])
                    assert "`phone_ping` answered" in answers[-1]["text"]
                    taken = lonely.run("svc", "phone")
                    assert "runs already" in taken.problem
                    modes = [(home / name).stat().st_mode & 0o777 for name in (PHONE_SCREEN_FILE, PHONE_SESSION)]
                    assert modes == [0o600, 0o600]
                    assert json.loads((home / PHONE_SCREEN_FILE).read_text())["secret"] not in "".join(phone.seen)
                    phone.process.send_signal(signal.SIGINT)
                else:
                    status = lonely.run("svc", "status").out.splitlines()
                    assert [line.split()[0] for line in status[:4]] == ["Relay", "API", "Dashboard", "Phone"]
                    assert status[3].startswith("Phone      simulated  up ")
                    assert f"pid {phone.process.pid}, " in status[3]
                    assert lonely.run("svc", "down").out == "Stopped: relay, api, dashboard, phone.\n"
                assert phone.wait() == 0
            assert (home / PHONE_SCREEN_FILE).read_text() == ""
        assert servers.wait() == 0
