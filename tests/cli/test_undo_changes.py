import json
from collections.abc import Callable
from typing import Any

import pytest
from attrs import evolve

from svc_proto.cli.undo_changes import NO_API, change_lines, changes_of, undo_changes
from svc_proto.commands import Exit
from svc_proto.engine.core import Engine
from svc_proto.engine.flow import Flow
from svc_proto.relay_config import RelayConfig
from svc_proto.schema.json_object import JsonObject
from tests.cli.harness import OneShotHarness, as_json

CONFIG = RelayConfig(webapi_inside="http://127.0.0.1:8642", api_key="k")
CHANGES: list[dict[str, object]] = [
    {"kind": "approval", "target": "s", "before": "", "after": "a" * 100},
    {"kind": "setting", "target": "model", "before": "", "after": "his", "undone": True, "why": None},
    {"kind": "memory", "target": "user", "before": "a", "after": "b" * 200, "undone": False, "why": "changed\nagain"},
    {"kind": "memory", "target": "user", "before": "", "after": ""},
]


@pytest.mark.parametrize(
    ("call", "method", "path"),
    [(changes_of, "GET", "/api/changes?principal=my%20tablet"), (undo_changes, "POST", "/api/changes/undo")],
)
def test_requests(call: Callable[[Engine, RelayConfig, str], Flow[list[JsonObject]]], method: str, path: str) -> None:
    answer: Any = as_json({"changes": CHANGES})
    world = OneShotHarness(lambda engine: call(engine, CONFIG, "my tablet"), http=answer)
    assert world.run() == CHANGES
    (asked,) = world.asked
    assert (asked.method, asked.path) == (method, path)
    if method == "POST":
        assert json.loads(asked.body) == {"principal": "my tablet"}


def test_refusals() -> None:
    answer = as_json({"error": {"message": "no"}}, status=401)
    world = OneShotHarness(lambda engine: changes_of(engine, CONFIG, "x"), http=answer)
    assert world.fails() == Exit(1, "the API server refuses: no")
    world = OneShotHarness(lambda engine: changes_of(engine, evolve(CONFIG, webapi_inside=None), "x"))
    assert world.fails() == Exit(1, NO_API)


def test_lines() -> None:
    assert change_lines([JsonObject(change) for change in CHANGES]) == [
        f"  approval  {'a' * 100}",
        "  setting   model: (none) -> his  undone",
        f"  note      user: a -> {'b' * 99}…  not undone: changed again",
        "  note      user: (removed)",
    ]
