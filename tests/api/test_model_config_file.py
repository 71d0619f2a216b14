"""Changes of the configuration file (wire api 8.1): allowed changes, preserved text, and errors."""

import pytest
from attrs import evolve

from svc_proto.api.config import ApiConfig
from svc_proto.api.model_config_file import ModelConfigFile, parse_change, parse_prompt
from svc_proto.basics.errors import Refused
from svc_proto.commands import Level, WriteConfig
from tests.api.harness import CONFIG, HOME, KEY, ApiHarness

LOCAL = "http://127.0.0.1:11434/v1"
CLOUD = "https://api.example/v1"


@pytest.mark.parametrize(
    ("body", "change"),
    [
        ({}, {}),
        ({"model": " m "}, {"model": "m"}),
        ({"model": "x" * 256}, {"model": "x" * 256}),
        ({"base_url": LOCAL + "/"}, {"base_url": LOCAL}),
        ({"model": "", "provider": "custom", "base_url": ""}, {"model": "", "provider": "custom", "base_url": ""}),
    ],
)
def test_changes(body: dict[str, object], change: dict[str, str]) -> None:
    assert parse_change(body) == change


@pytest.mark.parametrize(
    "body",
    [
        {"model": 7},
        {"model": None},
        {"model": "a\nb"},
        {"model": "x" * 257},
        {"provider": ["x"]},
        {"base_url": "nonsense"},
        {"base_url": "file:///etc/passwd"},
        {"base_url": "http://user:pw@host/v1"},
        {"base_url": "http://host/v1?key=x"},
        {"api_key": "x"},
    ],
)
def test_bad_changes(body: dict[str, object]) -> None:
    with pytest.raises(Refused) as caught:
        parse_change(body)
    assert caught.value.status == 400
    assert "pw" not in caught.value.message


def test_longest_prompt() -> None:
    assert parse_prompt("x" * 20_000, "content") == {"system_prompt": "x" * 20_000}


def patch(book: ApiHarness, **body: str) -> tuple[int, object]:
    answer = book.request("PATCH", "/api/config", body)
    return answer.status, answer.json


@pytest.mark.parametrize(
    ("before", "change", "after"),
    [
        (None, {"model": "m"}, "model:\n  default: m\n"),
        ("# empty\n", {"model": "m"}, "# empty\nmodel:\n  default: m\n"),
        ("model: old  # why\n", {"model": "m"}, "model: m    # why\n"),
        ("model: old\n", {"provider": "p"}, "model:\n  default: old\n  provider: p\n"),
        (
            "# top\nz: 1\nmodel:\n  # which\n  default: old\n  api_key: k\na: [1, 2]\n",
            {"model": "m", "provider": "p"},
            "# top\nz: 1\nmodel:\n  # which\n  default: m\n  api_key: k\n  provider: p\na: [1, 2]\n",
        ),
        ("model: [x]\n", {"model": "m"}, "model:\n  default: m\n"),
        ("z: 1\n", {}, "z: 1\n"),
    ],
)
def test_comments_and_order_stay(before: str | None, change: dict[str, str], after: str) -> None:
    book = ApiHarness(files={} if before is None else {CONFIG: before})
    assert patch(book, **change)[0] == 200
    assert book.disk.get(CONFIG).decode() == after


def test_answer_has_the_effective_values() -> None:
    book = ApiHarness()
    body = {"model": "m", "provider": "custom", "base_url": LOCAL}
    assert patch(book, **body) == (200, {"ok": True, **body})
    assert "configuration changed" in book.events()
    assert book.request("GET", "/api/config").json["model"] == "m"
    over = ApiHarness(ApiConfig(key=KEY, model="of-env", model_base_url=CLOUD))
    assert patch(over, **body) == (200, {"ok": True, "model": "of-env", "provider": "custom", "base_url": CLOUD})


def test_endpoint_with_a_key_keeps_its_host() -> None:
    before = f"model: {{base_url: '{CLOUD}', api_key: sesame}}\n"
    book = ApiHarness(files={CONFIG: before})
    book.secrets.add("sesame")
    status, body = patch(book, base_url="https://evil.example/v1")
    assert status == 400
    assert body == {"error": "base_url cannot move to another host while a model key is set: edit the file by hand"}
    assert patch(book, base_url="https://api.example:444/v1")[0] == 400
    assert patch(book, base_url="http://api.example/v1")[0] == 400
    assert book.disk.get(CONFIG).decode() == before
    assert patch(book, base_url="https://API.example/v2")[0] == 200
    assert patch(book, base_url="")[0] == 200
    assert patch(book, base_url="https://evil.example/v1")[0] == 400
    assert not book.leaks()
    book = ApiHarness(ApiConfig(key=KEY, model_api_key="sesame"))
    assert patch(book, base_url=LOCAL)[0] == 400
    assert patch(book, model="m")[0] == 200
    assert not book.leaks()


def test_two_changes_at_once_are_both_kept() -> None:
    book = ApiHarness()
    book.hold = (WriteConfig,)
    first = book.call("PATCH", "/api/config", {"model": "m"})
    second = book.call("PATCH", "/api/config", {"provider": "p"})
    book.hold = ()
    book.release()
    assert (first.result.status, second.result.status) == (200, 200)
    assert book.disk.get(CONFIG).decode() == "model:\n  default: m\n  provider: p\n"


@pytest.mark.parametrize(
    "content", [b"model: [", b"- 1\n", b"a: 1\na: 2\n", b"\xff\xfe\n", b"model: x\n" * 200_000], ids=range(5)
)
def test_uneditable_file_is_kept(content: bytes) -> None:
    book = ApiHarness(files={CONFIG: content})
    status, body = patch(book, model="m")
    assert status == 500
    assert isinstance(body, dict)
    assert "the configuration file" in body["error"]
    assert book.disk.get(CONFIG) == content


def test_a_disk_that_is_full() -> None:
    book = ApiHarness()
    book.refuse = (WriteConfig,)
    assert patch(book, model="m") == (500, {"error": "the configuration file could not be written"})
    assert book.events(Level.ERROR) == ["configuration not written"]
    book.refuse = ()
    assert patch(book, model="m")[0] == 200


def test_a_file_outside_of_the_home() -> None:
    book = ApiHarness()
    file = ModelConfigFile(book.engine, evolve(book.config, config_path="/etc/svc.yaml"))
    errors: list[Exception] = []
    book.engine.spawn(file.change_model({"model": "m"}), on_error=errors.append)
    (error,) = errors
    assert isinstance(error, Refused)
    assert (error.status, error.code) == (500, "config_write_failed")
    assert HOME not in error.message
