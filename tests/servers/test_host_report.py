import os
import socket
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from servers.host_report import collect_host_report, inspect_certificate, model_settings, record_backup
from tests.runtimes.certificates import make_certificate
from tests.servers.program_process import FOREIGN


class Reporter:
    """Builder of host reports of a home, after it has set the environment variables in its arguments."""

    def __init__(self, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.home = home
        self._monkeypatch = monkeypatch

    def __call__(self, **variables: str) -> dict[str, Any]:
        for name, value in variables.items():
            self._monkeypatch.setenv(name, value)
        return collect_host_report(str(self.home))


@pytest.fixture
def report(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Reporter:
    for name in list(os.environ):
        if name.startswith(FOREIGN):
            monkeypatch.delenv(name)
    home = tmp_path / "home"
    home.mkdir(mode=0o700)
    return Reporter(home, monkeypatch)


def test_a_healthy_home(report: Reporter) -> None:
    found = report()
    quiet = ("home_problem", "open_files", "database_problem", "env_problem", "unknown_variables", "config_problems")
    assert [found[name] for name in (*quiet, "missing_paths", "certificates", "servers")] == [
        *("", [], "", "", [], []),
        *([], [], []),
    ]
    assert found["disk_free"] > 0
    assert found["backup_at"] is None
    assert found["model"] == {"base_url": "", "name": "", "key": "", "context": None, "source": ""}


def test_planted_faults(report: Reporter) -> None:
    home = report.home
    (home / "svc.db").write_bytes(b"no database" * 100)
    (home / ".env").write_text("A='")
    (home / "config.yaml").write_text("tts: 5\n")
    record_backup(home)
    found = report(RELAY_TERMINAL_SHELL="/nope/shell", RELAY_MEDIA_ALLOWED_ROOTS="/tmp:/nope", SVC_X9="1")
    assert "not a database" in found["database_problem"]
    assert found["env_problem"].endswith(".env: line 1: neither NAME=value nor a comment, or a quote without its end")
    assert found["config_problems"] == [f"{home}/config.yaml line 1: tts is a number, not an object"]
    assert found["missing_paths"] == ["RELAY_TERMINAL_SHELL=/nope/shell", "RELAY_MEDIA_ALLOWED_ROOTS=/nope"]
    assert found["unknown_variables"] == ["SVC_X9 is no variable that is known here"]
    assert found["backup_at"] > 0


def test_a_locked_database(report: Reporter) -> None:
    path = report.home / "svc.db"
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE schema_version (component TEXT, version INTEGER)")
    locking = sqlite3.connect(path, isolation_level=None)
    try:
        locking.execute("BEGIN EXCLUSIVE")
        assert report()["database_problem"] == "database is locked"
    finally:
        locking.close()
    assert report()["database_problem"] == ""


def test_a_database_server_that_is_away(report: Reporter) -> None:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        url = f"postgresql://svc:secret@127.0.0.1:{sock.getsockname()[1]}/svc"
        found = report(SVC_DATABASE_URL=url)
    assert found["database_problem"] == "127.0.0.1 cannot be reached: connection refused"
    assert "secret" not in f"{found['database']} {found['database_problem']}"


def test_the_model_of_the_settings(tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text("model: {base_url: 'http://a/v1', default: m, api_key: k, context_length: 5}")
    assert model_settings({}, tmp_path) == {
        "base_url": "http://a/v1",
        "name": "m",
        "key": "k",
        "context": 5,
        "source": "model.base_url in config.yaml",
    }
    found = model_settings({"SVC_MODEL_BASE_URL": "http://b/v1", "SVC_MODEL": "n"}, tmp_path)
    assert (found["base_url"], found["name"], found["source"]) == ("http://b/v1", "n", "SVC_MODEL_BASE_URL")
    assert model_settings({"SVC_MODEL_BASE_URL": "ftp://b"}, tmp_path) == {}


def test_certificates(tmp_path: Path) -> None:
    cert, key = make_certificate(tmp_path)
    found = inspect_certificate(str(cert), str(key))
    assert found["problem"] == ""
    assert float(str(found["days_left"])) > 0
    missing = inspect_certificate(str(tmp_path / "none"), str(key))
    assert "none" in str(missing["problem"])
