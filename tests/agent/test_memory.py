from collections.abc import Callable
from typing import Any

import pytest

from svc_proto.agent.agent_factory import AgentParts
from svc_proto.agent.interface import MemoryChange
from svc_proto.agent.memory import FILES, MAX_CHARS, AgentMemory, MemoryChangeResult, usage_of
from svc_proto.engine.core import Engine
from svc_proto.engine.flow import Flow
from svc_proto.engine.sync import gather
from svc_proto.facts import Failure
from tests.agent.harness import HOME, AgentHarness

PATH = f"{HOME}/{FILES['memory']}"


def with_memory(world: AgentHarness, plan: Callable[[AgentMemory], Flow[Any]]) -> Any:
    return world.run(lambda parts, engine: plan(parts.memory))


def world_with(text: str | None) -> AgentHarness:
    world = AgentHarness()
    if text is not None:
        world.disk.put(PATH, text.encode())
    return world


def test_adding(world: AgentHarness) -> None:
    change = with_memory(world, lambda memory: memory.add("memory", "  Tea\r\nGreen § \n"))
    body = {"success": True, "target": "memory", "entry_count": 1, "usage": "0% - 9/2,200 chars"}
    note = MemoryChange(target="memory", count=1, added="Tea\nGreen")
    assert (change.status, change.body, change.note) == (200, {**body, "message": "Entry added."}, note)
    assert change.text == "Entry added."
    with_memory(world, lambda memory: memory.add("memory", "Coffee"))
    assert world.disk.get(PATH).decode() == "Tea\nGreen\n§\nCoffee\n"
    assert with_memory(world, lambda memory: memory.entries("memory")) == ("Tea\nGreen", "Coffee")
    assert with_memory(world, lambda memory: memory.entries("user")) == ()
    world = world_with("Tea\n§\n§\nCoffee")
    change = with_memory(world, lambda memory: memory.add("memory", "Tea"))
    assert (change.status, change.note) == (200, None)
    assert change.body["entry_count"] == 2
    assert "already" in change.text
    assert world.disk.get(PATH) == "Tea\n§\n§\nCoffee".encode()


def test_replacing_and_removing() -> None:
    world = world_with("Likes tea\r\n§\r\nLives in Bern")
    assert with_memory(world, lambda memory: memory.replace("memory", "tea", "Likes coffee")).text == "Entry replaced."
    assert with_memory(world, lambda memory: memory.entries("memory")) == ("Likes coffee", "Lives in Bern")
    assert with_memory(world, lambda memory: memory.remove("memory", "Bern")).body["entry_count"] == 1
    assert with_memory(world, lambda memory: memory.entries("memory")) == ("Likes coffee",)
    with_memory(world, lambda memory: memory.remove("memory", "coffee"))
    assert with_memory(world, lambda memory: memory.entries("memory")) == ()


REMOVE, SPECIFY = "use remove to delete an entry", "be more specific"


@pytest.mark.parametrize(
    ("plan", "error", "listed"),
    [
        (lambda memory: memory.add("memory", " § "), "content must not be empty", ""),
        (lambda memory: memory.replace("memory", "tea", ""), f"content must not be empty; {REMOVE}", ""),
        (lambda memory: memory.remove("memory", " "), "old_text must not be empty", ""),
        (lambda memory: memory.replace("memory", "milk", "x"), "no entry contains old_text", "current_entries"),
        (lambda memory: memory.remove("memory", "tea"), f"several entries contain old_text: {SPECIFY}", "matches"),
        (lambda memory: memory.add("moods", "x"), "target must be memory or user", ""),
    ],
)
def test_refusals(plan: Callable[[AgentMemory], Flow[MemoryChangeResult]], error: str, listed: str) -> None:
    world = world_with("green tea\n§\nblack tea\n")
    change = with_memory(world, plan)
    entries = {listed: ["green tea", "black tea"]} if listed else {}
    assert (change.status, change.body, change.note) == (400, {"success": False, "error": error, **entries}, None)
    assert change.text == error
    assert world.disk.get(PATH) == "green tea\n§\nblack tea\n".encode()


def test_the_cap() -> None:
    world = world_with("x" * 2_000)
    fits = with_memory(world, lambda memory: memory.add("memory", "y" * 200))
    assert fits.body["usage"] == "100% - 2,200/2,200 chars"
    over = with_memory(world, lambda memory: memory.add("memory", "z"))
    assert over.status == 400
    assert over.body["error"].startswith("memory would hold 2,201 of 2,200 characters")
    assert over.body["usage"] == "100% - 2,200/2,200 chars"
    assert len(over.body["current_entries"]) == 2
    world = world_with("x" * 3_000 + "\n§\n" + "y" * 500)
    assert with_memory(world, lambda memory: memory.replace("memory", "yyy", "y")).status == 200
    assert with_memory(world, lambda memory: memory.replace("memory", "y", "w")).status == 200
    assert with_memory(world, lambda memory: memory.add("memory", "z")).status == 400
    assert usage_of("memory", ("x" * 264,)) == "12% - 264/2,200 chars"
    assert usage_of("user", ()) == f"0% - 0/{MAX_CHARS['user']:,} chars"


def test_two_at_once_lose_nothing(world: AgentHarness) -> None:
    def plan(parts: AgentParts, engine: Engine) -> Flow[list[MemoryChangeResult]]:
        flows = [parts.memory.add("user", f"entry {number}") for number in range(8)]
        return (yield from gather(engine, flows))

    assert [dict(change.body)["entry_count"] for change in world.run(plan)] == list(range(1, 9))


def test_unreadable_or_unwritable_store(world: AgentHarness) -> None:
    world.disk.put(PATH, b"\xff")
    assert isinstance(with_memory(world, lambda memory: memory.entries("memory")), Failure)
    change = with_memory(world, lambda memory: memory.add("memory", "Tea"))
    refusal = {"success": False, "error": "the memory store is not available"}
    assert (change.status, change.body, change.note) == (503, refusal, None)
    world = AgentHarness()
    world.disk.capacity = 1
    assert with_memory(world, lambda memory: memory.add("memory", "Tea")).status == 503
    assert ("memory not available", {"problem": "no_space"}) in world.logs


def test_changes_are_reported_for_undo() -> None:
    """Report each change so that it can be undone, even where one entry contains another."""
    world = world_with("Tea\n§\nTea and milk\n§\nHoney")
    change = with_memory(world, lambda memory: memory.replace("memory", "Honey", "Sugar"))
    assert change.note == MemoryChange(target="memory", count=3, added="Sugar", removed="Honey")
    change = with_memory(world, lambda memory: memory.replace("memory", "Sugar", "Tea"))  # which exists already
    assert change.note == MemoryChange(target="memory", count=2, removed="Sugar")
    change = with_memory(world, lambda memory: memory.replace("memory", "Tea", "Tea"))
    assert (change.status, change.note) == (200, None)
    change = with_memory(world, lambda memory: memory.remove("memory", "Tea"))
    assert change.note == MemoryChange(target="memory", count=1, removed="Tea")
    assert world.disk.get(PATH).decode() == "Tea and milk\n"
    change = with_memory(world, lambda memory: memory.rewrite("memory", "Rum\n§\nGin"))
    assert change.note == MemoryChange(target="memory", count=2, added="Rum", removed="Tea and milk")
    assert change.others == (MemoryChange(target="memory", count=2, added="Gin"),)
