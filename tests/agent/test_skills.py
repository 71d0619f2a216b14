from typing import Any

import pytest

from svc_proto.agent.skills import MAX_FILE, MAX_FOLDERS, MAX_SKILLS, Skill
from tests.agent.harness import HOME, AgentHarness

ROOT = f"{HOME}/skills"
BATTERY = """\
---
name: battery-care
description: Look after
  the battery
tags: [phone, power]
related_skills: "notes, brew"
---
# Battery
See references/levels.md and `scripts/check.py`, again references/levels.md, not references/../../x.md.
"""


@pytest.fixture
def world() -> AgentHarness:
    world = AgentHarness()
    world.disk.put(f"{ROOT}/notes/SKILL.md", b"\xef\xbb\xbf# Take notes\r\n\r\nWrite down.")
    world.disk.put(f"{ROOT}/phone/battery/SKILL.md", BATTERY.encode())
    world.disk.put(f"{ROOT}/phone/battery/references/levels.md", b"80%")
    world.disk.put(f"{ROOT}/phone/battery/logo.png", b"\x89PNG\xff")
    world.disk.put(f"{ROOT}/phone/battery/LICENSE", b"MIT")
    world.disk.put(f"{ROOT}/phone/battery/deep/SKILL.md", b"# Not a skill of its own")
    world.disk.put(f"{ROOT}/.git/SKILL.md", b"# Hidden")
    world.disk.put(f"{HOME}/config.yaml", b"key: secret")
    return world


def listed(world: AgentHarness) -> list[Skill]:
    return list(world.run(lambda parts, engine: parts.skills.list()))


def read(world: AgentHarness, name: str, file_path: str | None = None) -> dict[str, Any]:
    return dict(world.run(lambda parts, engine: parts.skills.read(name, file_path)))


def test_the_list(world: AgentHarness) -> None:
    assert [skill.row for skill in listed(world)] == [
        {"name": "notes", "description": "Take notes", "category": None},
        {"name": "battery-care", "description": "Look after the battery", "category": "phone"},
    ]


def test_skills_and_folders_are_limited() -> None:
    assert listed(AgentHarness()) == []
    world = AgentHarness()
    for number in range(MAX_SKILLS + 1):
        world.disk.put(f"{ROOT}/s{number:03}/SKILL.md", b"# S")
    assert len(listed(world)) == MAX_SKILLS
    world = AgentHarness()
    for number in range(MAX_FOLDERS):
        world.disk.folder(f"{ROOT}/a{number:03}")
    world.disk.put(f"{ROOT}/b/SKILL.md", b"# Late")
    assert listed(world) == []


def test_a_skill(world: AgentHarness) -> None:
    assert read(world, "battery-care") == {
        "success": True,
        "name": "battery-care",
        "description": "Look after the battery",
        "category": "phone",
        "tags": ["phone", "power"],
        "related_skills": ["notes", "brew"],
        "content": BATTERY,
        "path": "phone/battery/SKILL.md",
        "linked_files": {"references": ["references/levels.md"], "scripts": ["scripts/check.py"]},
    }
    notes = read(world, "notes")
    assert notes["content"] == "# Take notes\n\nWrite down."
    assert notes["linked_files"] is None
    assert (notes["tags"], notes["related_skills"]) == ([], [])


def test_skill_that_is_unknown_or_in_an_unreadable_folder(world: AgentHarness) -> None:
    known = ["notes", "battery-care"]
    refusal = {"success": False, "error": "there is no skill 'cooking'", "available_skills": known}
    assert read(world, "cooking") == refusal
    world.disk.denied.add(f"{ROOT}/notes")
    assert [skill.name for skill in listed(world)] == ["battery-care"]


@pytest.mark.parametrize(
    ("path", "members"),
    [
        ("references/levels.md", {"content": "80%", "file_type": ".md"}),
        ("LICENSE", {"content": "MIT", "file_type": ""}),
        ("logo.png", {"is_binary": True}),
        ("references/../LICENSE", {"content": "MIT", "file_type": ""}),
    ],
)
def test_files_of_a_skill(world: AgentHarness, path: str, members: dict[str, object]) -> None:
    assert read(world, "battery-care", path) == {"success": True, "name": "battery-care", "file": path, **members}


@pytest.mark.parametrize(
    "path",
    [
        *("../../../config.yaml", "../../notes/SKILL.md", "/home/user/.svc/config.yaml"),
        *("references/../../../../config.yaml", "link", "links/config.yaml", "a\x00b", "gone.md", "references"),
        *(".", "..", "pipe"),
    ],
)
def test_files_out_of_reach(world: AgentHarness, path: str) -> None:
    world.disk.symlink(f"{ROOT}/phone/battery/link", f"{HOME}/config.yaml")
    world.disk.symlink(f"{ROOT}/phone/battery/links", HOME)
    world.disk.special(f"{ROOT}/phone/battery/pipe")
    found = read(world, "battery-care", path)
    assert found == {"success": False, "error": f"{path!r} is not a file of this skill"}


def test_too_large_file_and_link_to_another_skill(world: AgentHarness) -> None:
    world.disk.put("/srv/shared/SKILL.md", b"# Shared")
    world.disk.symlink(f"{ROOT}/shared", "/srv/shared")
    assert read(world, "battery-care", "../../shared/SKILL.md")["success"] is False
    world.disk.put(f"{ROOT}/phone/battery/big.txt", b"x" * (MAX_FILE + 1))
    assert read(world, "battery-care", "big.txt")["error"] == "'big.txt' is too large"
    world.disk.put(f"{ROOT}/phone/battery/big.txt", b"x" * MAX_FILE)
    assert read(world, "battery-care", "big.txt")["success"] is True


@pytest.mark.parametrize(
    ("text", "name", "description"),
    [
        ("---\nname: [1]\ndescription: 5\n---\n# Title\n", "x", "Title"),
        ("---\nname: ' '\n---\n", "x", ""),
        ("---\n: : :\n---\nWords\n", "x", "Words"),
        ("---\nname: open\n", "x", "---"),
        ("---\nname: y\ntags: 5\n---", "y", ""),
        ("", "x", ""),
    ],
)
def test_front_matter_of_every_kind(text: str, name: str, description: str) -> None:
    world = AgentHarness()
    world.disk.put(f"{ROOT}/x/SKILL.md", text.encode())
    (skill,) = listed(world)
    assert (skill.name, skill.description, skill.tags) == (name, description, ())


def test_first_skill_of_a_name_counts_up_to_a_depth() -> None:
    world = AgentHarness()
    world.disk.put(f"{ROOT}/a/SKILL.md", b"---\nname: same\n---\nFirst")
    world.disk.put(f"{ROOT}/b/SKILL.md", b"---\nname: same\n---\nSecond")
    (skill,) = listed(world)
    assert skill.folder == f"{ROOT}/a"
    world = AgentHarness()
    world.disk.put(f"{ROOT}/a/b/c/d/SKILL.md", b"# Deep")
    world.disk.put(f"{ROOT}/a/b/c/d2/e/SKILL.md", b"# Too deep")
    assert [(skill.name, skill.category) for skill in listed(world)] == [("d", "a/b/c")]
