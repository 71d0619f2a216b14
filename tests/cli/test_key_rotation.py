import re
from typing import Any

import pytest
import yaml

from runtimes.files.env_file import parse_env_file
from svc_proto.cli.key_rotation import KeyRotationResult, rotate_key
from svc_proto.commands import Exit, Operation, WriteConfig
from svc_proto.facts import Failed, Failure, FailureKind
from svc_proto.relay_config import RelayConfig
from tests.cli.harness import REFUSED, OneShotHarness, Reply, as_json
from tests.support.channel_ends import HarnessNode
from tests.support.core_harness import HOME

CONFIG = RelayConfig(home="/h", config_path="/h/config.yaml")
KEYED = RelayConfig(home="/h", config_path="/h/config.yaml", api_key="of-the-environment")
RUNNING = RelayConfig(home=HOME, config_path=f"{HOME}/config.yaml", webapi_inside="http://127.0.0.1:8642")
ELSEWHERE = RelayConfig(home="/h", config_path="/etc/svc.yaml")
EXTRA = b"# mine\nplatforms:\n  api_server:\n    extra:\n      key: old  # secret\n    api_key: older\n"
PLAIN = b"platforms:\n  api_server:\n    api_key: old\n    extra:\n      key: ''\n"


def world(
    config: bytes | None = None, dotenv: str | None = None, settings: RelayConfig = CONFIG, http: Reply = REFUSED
) -> OneShotHarness[KeyRotationResult]:
    found = {f"{settings.config_path}": config, f"{settings.home}/.env": dotenv}
    files = {path: text for path, text in found.items() if text is not None}
    return OneShotHarness(lambda engine: rotate_key(engine, settings), files=files, http=http)


def denied(there: OneShotHarness[KeyRotationResult], path: str) -> OneShotHarness[KeyRotationResult]:
    there.disk.denied.add(path)
    return there


def keys_in(there: OneShotHarness[KeyRotationResult]) -> list[str]:
    """Return the keys that remain in the configuration file."""
    server = yaml.safe_load(str(there.written_configs["config.yaml"]))["platforms"]["api_server"]
    return [key for key in (server["extra"]["key"], server["api_key"]) if key]


@pytest.mark.parametrize(("text", "places"), [(EXTRA, 2), (PLAIN, 1)])
def test_in_the_configuration_file(text: bytes, places: int) -> None:
    there = world(text, "A=1\n")
    done = there.run()
    assert (done.path, done.also) == ("/h/config.yaml", "")
    assert list(there.written_configs) == ["config.yaml"]
    assert keys_in(there) == [done.key] * places
    written = str(there.written_configs["config.yaml"])
    assert ("# mine" in written) is (text is EXTRA)
    assert "old  #" not in written
    assert re.fullmatch(r"sk-[A-Za-z0-9_-]{32}", done.key)
    assert done.key not in repr(done)


def test_key_in_both_files() -> None:
    there = world(EXTRA, "API_SERVER_KEY=other\n")
    done = there.run()
    assert (done.path, done.also) == ("/h/.env", "/h/config.yaml")
    assert list(there.written_configs) == ["config.yaml", ".env"]  # the source that servers read first is written last
    assert keys_in(there) == [done.key] * 2
    assert there.written_configs[".env"] == f"API_SERVER_KEY={done.key}\n"


def test_configuration_file_is_restored_if_the_env_file_cannot_be_written() -> None:
    class NoEnvFile(OneShotHarness[KeyRotationResult]):
        def execute(self, node: HarnessNode, operation: Operation[Any]) -> None:
            if isinstance(operation, WriteConfig) and operation.name == ".env":
                node.post(Failed(operation.op, Failure(FailureKind.NO_SPACE)))
            else:
                super().execute(node, operation)

    files = {"/h/config.yaml": EXTRA, "/h/.env": b"API_SERVER_KEY=other\n"}
    there = NoEnvFile(lambda engine: rotate_key(engine, CONFIG), files=files)
    assert there.fails().reason == "/h/.env cannot be written (no space left on the device): the old key stays"
    assert there.written_configs["config.yaml"] == EXTRA.decode()


@pytest.mark.parametrize("config", [None, b"", b"model: m-1\n", b"platforms: {api_server: {extra: {key: ' '}}}\n"])
def test_in_the_env_file(config: bytes | None) -> None:
    there = world(config, "A=1\nexport API_SERVER_KEY='old'\nB=2", KEYED)
    done = there.run()
    assert there.written_configs == {".env": f"A=1\nexport API_SERVER_KEY={done.key}\nB=2\n"}
    assert (done.path, done.in_environment) == ("/h/.env", True)


def test_no_previous_key() -> None:
    there = world()
    done = there.run()
    assert parse_env_file(str(there.written_configs[".env"])) == {"API_SERVER_KEY": done.key}
    assert not done.in_environment
    assert not there.asked


def beside(answer: Reply, dotenv: str = "API_SERVER_KEY=old") -> OneShotHarness[KeyRotationResult]:
    return world(dotenv=dotenv, settings=RUNNING, http=answer)


def test_running_api_reloads_with_the_old_key() -> None:
    there = beside(as_json({"ok": True, "changed": True}))
    done = there.run()
    assert (done.runs, done.kept) == (True, "")
    (asked,) = there.asked
    assert (asked.method, asked.url) == ("POST", "http://127.0.0.1:8642/api/key/reload")
    assert asked.headers.get(b"authorization") == b"Bearer old"


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (REFUSED, "connection refused"),
        (as_json({"ok": True, "changed": False}), "its files do not give it the new one"),
        (as_json({"error": {"message": "no files", "code": "x"}}, 409), "no files"),
        (as_json({"error": "Invalid API key"}, 401), "it answered 401"),
        ((404, b"<html>"), "it answered 404"),
    ],
)
def test_api_keeps_the_old_key(answer: Reply, why: str) -> None:
    there = beside(answer)
    done = there.run()
    assert (done.runs, done.kept) == (True, why)
    assert done.key in str(there.written_configs[".env"])


@pytest.mark.parametrize(
    ("there", "why"),
    [
        (world(dotenv="A=1", settings=KEYED), "API_SERVER_KEY of the environment"),
        (world(dotenv="API_SERVER_KEY=' '", settings=KEYED), "API_SERVER_KEY of the environment"),
        (world(b"\xff"), "/h/config.yaml is not UTF-8"),
        (denied(world(b""), "/h/config.yaml"), "/h/config.yaml cannot be read (permission denied)"),
        (denied(world(dotenv="A=1"), "/h/.env"), "/h/.env cannot be read"),
        (world(dotenv="A=1\nB='"), "/h/.env cannot be read (line 2: neither NAME=value nor a comment"),
        (world(EXTRA, settings=ELSEWHERE), "/etc/svc.yaml holds the key and is not in the service home"),
    ],
)
def test_unchangeable_keys(there: OneShotHarness[KeyRotationResult], why: str) -> None:
    failed = there.fails()
    assert isinstance(failed, Exit)
    assert failed.code == 1
    assert why in failed.reason
    assert there.written_configs == {}


def test_uneditable_or_unwritable_file() -> None:
    there = world(EXTRA)
    there.host.compute["yaml.edit"] = lambda text, changes: Failure(FailureKind.INVALID)
    assert "cannot be edited" in there.fails().reason
    there = world(b"a: [", "API_SERVER_KEY=old")
    there.host.compute["yaml.load"] = lambda text: Failure(FailureKind.INVALID)
    assert there.fails().reason == "/h/config.yaml is not valid YAML: mend it by hand"
    there = world()
    there.host.compute["dotenv.set"] = lambda text, name, value: Failure(FailureKind.INTERNAL)
    assert there.fails().reason == "/h/.env cannot be edited: mend it by hand"
    there = world()
    there.refuse = (WriteConfig,)
    assert there.fails().reason == "/h/.env cannot be written (no space left on the device): the old key stays"
