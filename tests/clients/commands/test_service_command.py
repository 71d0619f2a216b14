"""Tests of `svc service`: valid files for systemd and launchd, and an unchanged host after an error."""

import os
import plistlib
import shlex
import subprocess
from collections.abc import Sequence
from pathlib import Path
from shutil import which

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clients.commands import service_manager
from clients.commands.service_units import MARK, UnitSpec, launchd_agent, systemd_service, systemd_socket
from svc_proto.cli.errors import CliError
from tests.clients.commands.command_process import CommandHome, CommandRun

WORDS = ["/opt/my svc/bin/python", "-m", "servers", "--brand", 'a "b" \\ $HOME %h']
WANTED = UnitSpec(
    command=["/bin/true"], environment={"SVC_HOME": "/home/me/my svc", "A": 'b"$c%d\\'}, home=Path("/srv/svc")
)


class ServiceHome:
    """A user's folders, and a fake `systemctl` that records its calls."""

    def __init__(self, home: CommandHome) -> None:
        self.home = home
        self.folder = home.home / "config" / "systemd" / "user"
        self.unit = self.folder / "svc.service"
        tools = home.home / "tools"
        tools.mkdir()
        self.calls = home.home / "calls"
        self.fails = home.home / "fails"
        fake = (
            f'#!/bin/sh\necho "$@" >> {self.calls}\nif grep -qsx "$2" {self.fails}; then echo no bus >&2; exit 1; fi\n'
        )
        (tools / "systemctl").write_text(fake)
        (tools / "systemctl").chmod(0o755)
        self.env = {"XDG_CONFIG_HOME": str(home.home / "config"), "PATH": f"{tools}:{os.environ['PATH']}"}

    def run(self, *words: str) -> CommandRun:
        return self.home.run("svc", "service", *words, env=self.env)

    def called(self) -> list[str]:
        text = self.calls.read_text() if self.calls.exists() else ""
        self.calls.unlink(missing_ok=True)
        return text.splitlines()


@pytest.fixture
def linked(lonely: CommandHome) -> ServiceHome:
    return ServiceHome(lonely)


def test_install_and_remove(linked: ServiceHome) -> None:
    done = linked.run("install", "--listen", "relay=443", "--", "--brand", "hermes")
    assert (done.code, done.err) == (0, "")
    assert done.out.splitlines()[0] == f"Installed: {linked.unit}, {linked.folder / 'svc-relay.socket'}"
    assert "Not taken over from this shell: RELAY_PORT" in done.out
    text = linked.unit.read_text()
    assert " -P -m servers --no-qr --brand hermes\n" in text
    assert f"Environment=SVC_HOME={linked.home.home}/svc\n" in text
    assert "Type=notify" in text
    assert linked.called() == ["--user daemon-reload", "--user enable --now svc.service svc-relay.socket"]
    assert linked.run("install", "--no-now").code == 0
    assert "Requires" not in linked.unit.read_text()
    assert linked.called() == ["--user daemon-reload", "--user enable svc.service"]
    assert linked.run("remove").out == f"Removed: {linked.unit}, {linked.folder / 'svc-relay.socket'}\n"
    assert linked.called() == ["--user disable --now svc.service svc-relay.socket", "--user daemon-reload"]
    assert linked.run("remove").out == f"Nothing of ours is in {linked.folder}.\n"
    assert (linked.home.home / "svc").is_dir()


def test_a_failed_install_changes_nothing(linked: ServiceHome) -> None:
    linked.fails.write_text("enable\n")
    assert linked.run("install").problem == "systemctl --user enable failed: no bus"
    assert not linked.unit.exists()
    linked.fails.unlink()
    linked.run("install", "--no-now")
    before = linked.unit.read_text()
    linked.fails.write_text("daemon-reload\n")
    assert linked.run("install", "--", "--port", "1").problem == "systemctl --user daemon-reload failed: no bus"
    assert linked.unit.read_text() == before
    linked.unit.write_text("[Service]\nExecStart=/usr/bin/svc\n")
    assert linked.run("install").problem == f"{linked.unit} is there already, and not of ours"
    assert linked.run("remove").out.startswith("Nothing of ours is in ")
    assert linked.unit.exists()


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (["--", "--bogus"], "No such option '--bogus'."),
        (["--listen", "phone=1"], "--listen 'phone=1': it is relay, api, dashboard = [address:]port"),
        (["--listen", "relay=65536"], "--listen 'relay=65536'"),
        (["--listen", "relay=name:80"], "--listen 'relay=name:80'"),
        (["--user", "me"], "--user goes with --system"),
        (["--system", "--user", "absent-account"], "there is no user 'absent-account'"),
        (["--system"], "whose shells are phones to get?"),
    ],
)
def test_contradictory_options(linked: ServiceHome, words: list[str], problem: str) -> None:
    done = linked.run("install", *words)
    assert (done.code, done.problem[: len(problem)]) == (2, problem)
    assert not linked.folder.exists()
    assert linked.called() == []


@pytest.mark.parametrize("late", ["svc up --help", "systemd-analyze verify"])
def test_check_without_an_answer_in_time_is_one_error_line(
    linked: ServiceHome, monkeypatch: pytest.MonkeyPatch, late: str
) -> None:
    def run(words: Sequence[str], **options: object) -> subprocess.CompletedProcess[str]:
        if options.get("timeout") is not None and late == ("svc up --help" if "--help" in words else words[0]):
            raise subprocess.TimeoutExpired(words, 60.0)
        return subprocess.CompletedProcess(words, 0, "", "")

    monkeypatch.setenv("XDG_CONFIG_HOME", linked.env["XDG_CONFIG_HOME"])
    monkeypatch.setattr(subprocess, "run", run)
    monkeypatch.setattr(service_manager, "which", lambda name: f"{name} verify")
    with pytest.raises(CliError, match=f"^{late} failed: no answer in time$"):
        service_manager.install((), system=False, user=None, hardened=False, listen=(), now=True, show=False)
    assert not linked.unit.exists()


def test_print_does_nothing(linked: ServiceHome) -> None:
    done = linked.run("install", "--print", "--listen", "api=127.0.0.1:80")
    assert done.out.startswith(f"# {linked.unit}\n{MARK}\n")
    assert "ListenStream=127.0.0.1:80\n" in done.out
    assert "\nStartLimitIntervalSec=300\nStartLimitBurst=10\n" in done.out  # no start is repeated for ever
    assert not linked.folder.exists()
    system = linked.run("install", "--print", "--system", "--user", "root", "--hardened").out
    assert system.startswith("# /etc/systemd/system/svc.service\n")
    assert "User=root\n" in system
    assert "NoNewPrivileges=yes\n" in system
    assert "WantedBy=multi-user.target\n" in system


@pytest.mark.skipif(which("systemd-analyze") is None, reason="systemd is not here")
@pytest.mark.parametrize("user", [None, "root"])
def test_systemd_accepts_the_unit(tmp_path: Path, user: str | None) -> None:
    wanted = UnitSpec(
        command=["/bin/true", *WORDS[1:]],
        environment=WANTED.environment,
        home=Path("/srv/my svc"),
        user=user,
        hardened=True,
        sockets={"relay": "[::1]:443"},
    )
    (tmp_path / "svc.service").write_text(systemd_service(wanted))
    (tmp_path / "svc-relay.socket").write_text(systemd_socket("relay", "[::1]:443"))
    words = ["systemd-analyze", "verify", "--man=no", "svc.service", "svc-relay.socket"]
    said = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert "svc" not in said.stderr, said.stderr
    assert said.returncode == 0


@given(
    st.lists(st.text(st.characters(codec="utf-8", exclude_characters="\0\r", exclude_categories=["Cc"]), min_size=1))
)
def test_words_are_escaped_in_the_unit(words: list[str]) -> None:
    wanted = UnitSpec(command=["/bin/true", *words], environment={}, home=Path("/"))
    (line,) = [line for line in systemd_service(wanted).split("\n") if line.startswith("ExecStart=")]
    meant = line.removeprefix("ExecStart=").replace("%%", "%").replace("$$", "$")
    assert shlex.split(meant, posix=True) == ["/bin/true", *words]


def test_launchd() -> None:
    told = plistlib.loads(launchd_agent(WANTED, Path("/log")))
    assert told["ProgramArguments"] == ["/bin/true"]
    assert told["EnvironmentVariables"]["A"] == 'b"$c%d\\'
    assert told["KeepAlive"] == {"SuccessfulExit": False}
