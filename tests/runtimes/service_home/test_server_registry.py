import fcntl
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from attrs import evolve

from runtimes.service_home import server_registry
from runtimes.service_home.home import service_home_path, with_env_file
from runtimes.service_home.running_relay import with_running_settings
from svc_proto.basics.brand import HERMES, SVC
from svc_proto.relay_config import RelayConfig

WHERE = {"host": "::", "port": 8767, "inside": "http://[::1]:8767"}


def taken(home: Path, role: str = "relay", **more: object) -> server_registry.HomeClaim:
    made = server_registry.lock_home(home, role, version="1.2")
    made.publish({**WHERE, **more})
    return made


def test_a_running_server_is_found_with_its_settings(tmp_path: Path) -> None:
    assert server_registry.find_running_server(tmp_path, "relay") is None
    relay = taken(tmp_path, certificate="c.pem", certificate_key="k.pem", brand="hermes")
    found = server_registry.find_running_server(tmp_path, "relay")
    assert found is not None
    assert (found.role, found.pid, found.version, found.brand) == ("relay", os.getpid(), "1.2", "hermes")
    assert (found.url, found.inside) == ("https://[::]:8767", "http://[::1]:8767")
    api = taken(tmp_path, "api", host="127.0.0.1", key="environment")
    assert [each.url for each in server_registry.find_running_servers(tmp_path)] == [
        "https://[::]:8767",
        "http://127.0.0.1:8767",
    ]
    for claimed in (relay, api):
        claimed.release()
        claimed.release()  # a second call does nothing
        claimed.publish(WHERE)
    assert server_registry.find_running_servers(tmp_path) == []


def test_a_starting_server_holds_the_home_and_is_not_listed(tmp_path: Path) -> None:
    starting = server_registry.lock_home(tmp_path, "relay", version="1")
    assert server_registry.is_held(tmp_path, "relay")
    assert server_registry.find_running_server(tmp_path, "relay") is None
    starting.release()
    assert not server_registry.is_held(tmp_path, "relay")


def test_a_second_server_gets_the_holder_of_the_home(tmp_path: Path) -> None:
    first = taken(tmp_path)
    with pytest.raises(server_registry.HomeInUseError) as caught:
        server_registry.lock_home(tmp_path, "relay", version="1")
    assert (caught.value.role, caught.value.pid) == ("relay", os.getpid())
    taken(tmp_path, "api").release()  # a server of another kind is permitted
    first.release()
    taken(tmp_path).release()


def test_the_lock_ends_with_its_process_and_the_file_is_ignored(tmp_path: Path) -> None:
    program = (
        "import sys, os, pathlib; from runtimes.service_home.server_registry import lock_home; "
        "claim = lock_home(pathlib.Path(sys.argv[1]), 'relay', version='1'); "
        "claim.publish({'host': '::', 'port': 1, 'inside': 'x' * 999}); "
        "os.kill(os.getpid(), 9)"
    )
    done = subprocess.run([sys.executable, "-c", program, str(tmp_path)], check=False)
    assert done.returncode == -9
    assert json.loads((tmp_path / "run" / "relay.json").read_text())["port"] == 1
    assert not server_registry.is_held(tmp_path, "relay")
    assert server_registry.find_running_server(tmp_path, "relay") is None
    next_one = taken(tmp_path)  # whose description is shorter
    assert server_registry.find_running_server(tmp_path, "relay") is not None
    next_one.release()


def test_a_reader_does_not_block_the_lock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    taken(tmp_path).release()
    look = os.open(tmp_path / "run" / "relay.json", os.O_RDONLY)
    fcntl.flock(look, fcntl.LOCK_SH)
    monkeypatch.setattr("runtimes.service_home.server_registry.time.sleep", lambda seconds: os.close(look))
    assert server_registry.PROBE_TIMEOUT > 0
    taken(tmp_path).release()


@pytest.mark.parametrize("text", ["", "[]", "{", '{"role": "relay"}', "\x00\xff"])
def test_invalid_registry_files_are_ignored(tmp_path: Path, text: str) -> None:
    held = taken(tmp_path)
    (tmp_path / "run" / "relay.json").write_text(text)
    assert server_registry.find_running_server(tmp_path, "relay") is None
    with pytest.raises(server_registry.HomeInUseError) as caught:
        server_registry.lock_home(tmp_path, "relay", version="1")
    assert caught.value.pid is None
    held.release()


def test_registry_files_are_private(tmp_path: Path) -> None:
    taken(tmp_path / "home").release()
    assert (tmp_path / "home" / "run").stat().st_mode & 0o777 == 0o700
    assert (tmp_path / "home" / "run" / "relay.json").stat().st_mode & 0o777 == 0o600
    (tmp_path / "home" / "run" / "api.json").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(OSError, match="symbolic"):
        server_registry.lock_home(tmp_path / "home", "api", version="1")


def test_settings_follow_the_running_server(tmp_path: Path) -> None:
    config = RelayConfig(home=str(tmp_path), port=1, host="10.0.0.1", webapi_url="http://elsewhere:2")
    assert with_running_settings(config) == config
    relay = taken(tmp_path, certificate="c", certificate_key="k", brand="hermes", root_path="/relay")
    found = with_running_settings(config)
    assert (found.host, found.port, found.tls, found.inside) == ("::", 8767, True, "http://[::1]:8767")
    assert found.root_path == "/relay"
    assert (found.brand, with_running_settings(config, branded=True).brand) == (HERMES, SVC)
    assert found.webapi_inside is None
    api = taken(tmp_path, "api", host="127.0.0.1", port=3, inside="http://127.0.0.1:4")
    found = with_running_settings(evolve(config, ssl_cert="mine", ssl_key="mine"))
    assert (found.webapi_url, found.webapi_inside) == ("http://127.0.0.1:3", "http://127.0.0.1:4")
    relay.release()
    assert with_running_settings(config).port == 1
    named = evolve(config, api_key="of-this-shell", key_in_environment=True)
    assert not with_running_settings(named).key_in_environment  # the server has another one
    api.publish({**WHERE, "key": "environment"})
    assert with_running_settings(named).key_in_environment
    api.release()


def test_the_file_of_settings(tmp_path: Path) -> None:
    env = {"SVC_HOME": str(tmp_path), "RELAY_HOST": "::1"}
    assert with_env_file(env) == env
    (tmp_path / ".env").write_text("RELAY_PORT=5\nRELAY_HOST=no\nAPI_SERVER_KEY=secret\nSVC_HOME=/no\n")
    assert with_env_file(env) == {**env, "RELAY_PORT": "5"}
    assert with_env_file({**env, "API_SERVER_KEY": "mine"})["API_SERVER_KEY"] == "mine"
    assert with_env_file({**env, "API_SERVER_KEY": " "}) == {**env, "RELAY_PORT": "5"}
    assert service_home_path({"HERMES_HOME": "/h"}) == Path("/h")
    assert service_home_path({}) == Path.home() / ".svc"
