"""The tools for memory and skills, as a model calls them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.agent.world import HOME, AgentWorld
from tests.peers.model import calls, plain


def call(world: AgentWorld, tool: str, /, **arguments: Any) -> tuple[dict[str, Any], bool]:
    """The result as JSON, and whether the call failed."""
    world.model.answers = [calls((tool, arguments)), plain("Ok")]
    world.host.events.clear()
    world.answer("Go")
    (finished,) = world.host.finished
    return json.loads(finished.output.removeprefix("error: ")), finished.error is not None


def test_memory() -> None:
    world = AgentWorld()
    assert call(world, "memory", action="add", content="Tea")[0]["message"] == "Entry added."
    assert call(world, "memory", action="add", target="user", content="Ada")[0]["target"] == "user"
    assert call(world, "memory", action="replace", old_text="Tea", content="Milk")[0]["success"] is True
    assert call(world, "memory", action="remove", old_text="Milk")[0]["entry_count"] == 0
    assert call(world, "memory", action="remove", old_text="Milk") == (
        {"success": False, "error": "no entry contains old_text", "current_entries": []},
        True,
    )
    assert call(world, "memory", action="add", content="")[1]


def test_skills() -> None:
    world = AgentWorld()
    world.disk.put(f"{HOME}/skills/brew/SKILL.md", b"# Brew")
    world.disk.put(f"{HOME}/skills/phone/tap/SKILL.md", b"# Tap")
    assert call(world, "skills_list")[0]["count"] == 2
    assert call(world, "skills_list", category="phone")[0]["skills"] == [
        {"name": "tap", "description": "Tap", "category": "phone"}
    ]
    assert call(world, "skill_view", name="brew")[0]["content"] == "# Brew"
    assert call(world, "skill_view", name="brew", file_path="SKILL.md")[0]["file_type"] == ".md"


@pytest.mark.parametrize("arguments", [{"name": "gone"}, {"name": "brew", "file_path": "../x"}])
def test_skills_that_are_not_there(arguments: dict[str, str]) -> None:
    world = AgentWorld()
    world.disk.put(f"{HOME}/skills/brew/SKILL.md", b"# Brew")
    found, failed = call(world, "skill_view", **arguments)
    assert failed
    assert found["success"] is False
