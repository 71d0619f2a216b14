"""Skills: instructions for the agent as Markdown files under `<home>/skills`, written by the operator (wire api 8.2).

    skills/notes/SKILL.md                      a skill without a category
    skills/phone/battery/SKILL.md              one of the category `phone`
    skills/phone/battery/references/levels.md  a file that belongs to it

A `SKILL.md` may begin with YAML between two lines of `---`: `name`, `description`, `tags`, `related_skills`. A file is
opened first and then checked by its real path. Nothing outside of the skill's own folder is read, by any name or link.
Folders are listed for each call, so that a new skill is found at once.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, TypeAlias

from attrs import frozen

from svc_proto.commands import Compute, OpenFile, ReadFile, ReleaseFile
from svc_proto.engine.core import Engine
from svc_proto.engine.flow import Flow, run_operation
from svc_proto.facts import Failure, FailureKind
from svc_proto.machines.sandbox import is_within, normal_path

if TYPE_CHECKING:
    from svc_proto.schema.api_types import SkillJson, SkillRowJson
from svc_proto.schema.json_object import JsonObject, as_array, as_text

__all__ = ["MAX_FILE", "MAX_SKILLS", "Skill", "SkillLibrary"]

MAX_SKILLS = 200  # further ones are ignored
MAX_FOLDERS = 500  # folders that are listed in one call
MAX_FILE = 256 * 1024  # bytes of one file
MAX_DEPTH = 3  # folders of categories above a skill
MAX_DESCRIPTION = 1_024  # characters
MAX_NAMES = 50  # tags, related skills, linked files
OUTSIDE = Failure(FailureKind.DENIED, "outside of the skill's folder")
_Found: TypeAlias = "list[tuple[str, str | None, bytes]]"  # folder, category and SKILL.md of skills
_FRONT = re.compile(r"\A---[ \t]*\n(.*?)\n---[ \t]*(?:\n|\Z)", re.DOTALL)
_LINK = re.compile(r"\b((?:references|templates|scripts|assets|examples)/[A-Za-z0-9._/-]+[A-Za-z0-9_])")


@frozen(kw_only=True)
class Skill:
    """A skill: what its SKILL.md declares, and the whole text of that file."""

    name: str
    description: str
    category: str | None
    folder: str  # that holds its files
    content: str  # its whole SKILL.md
    tags: tuple[str, ...] = ()
    related: tuple[str, ...] = ()

    @property
    def path(self) -> str:
        """Return the path of its SKILL.md."""
        return f"{self.folder}/SKILL.md"

    @property
    def row(self) -> SkillRowJson:
        """Return the name, the description and the category as a row of a list of skills."""
        return {"name": self.name, "description": self.description, "category": self.category}


class SkillLibrary:
    """The skills of one home folder."""

    def __init__(self, engine: Engine, home: str) -> None:
        self._engine = engine
        self._root = f"{home}/skills"

    def list(self) -> Flow[tuple[Skill, ...]]:
        """Return the skills, at most `MAX_SKILLS`, by category and name; of equal names the first that is found."""
        found: dict[str, Skill] = {}
        for folder, category, data in (yield from self._walk()):
            skill = yield from self._parse(folder, category, data)
            found.setdefault(skill.name, skill)
        return tuple(sorted(found.values(), key=lambda skill: (skill.category or "", skill.name)))

    def read(self, name: str, file_path: str | None = None) -> Flow[SkillJson]:
        """Return the JSON of `GET /api/skills/{name}`, for the skill or one of its files; never raises."""
        skills = yield from self.list()
        skill = next((skill for skill in skills if skill.name == name), None)
        if skill is None:
            known = [each.name for each in skills]
            return {"success": False, "error": f"there is no skill {name[:100]!r}", "available_skills": known}
        if file_path:
            return (yield from self._file(skill, file_path))
        return {
            "success": True,
            "name": skill.name,
            "description": skill.description,
            "category": skill.category,
            "tags": [*skill.tags],
            "related_skills": [*skill.related],
            "content": skill.content,
            "path": skill.path.removeprefix(f"{self._root}/"),
            "linked_files": _linked(skill.content),
        }

    def _file(self, skill: Skill, file_path: str) -> Flow[SkillJson]:
        data = yield from self._open(skill.folder, file_path)
        if isinstance(data, Failure):
            why = "is too large" if data.kind is FailureKind.TOO_LARGE else "is not a file of this skill"
            return {"success": False, "error": f"{file_path[:200]!r} {why}"}
        found: SkillJson = {"success": True, "name": skill.name, "file": file_path}
        try:
            content = data.decode("utf-8")
        except UnicodeDecodeError:
            found["is_binary"] = True
            return found
        ending = file_path.rpartition("/")[2].rpartition(".")
        found["content"], found["file_type"] = content, f".{ending[2]}" if ending[1] else ""
        return found

    # --- reading ---

    def _walk(self) -> Flow[_Found]:
        """Return the folder, the category and the content of SKILL.md of the skills, up to the limits."""
        found: _Found = []
        waiting: list[tuple[str, ...]] = [(name,) for name in (yield from self._folders(()))]
        looked = 0
        while waiting and looked < MAX_FOLDERS and len(found) < MAX_SKILLS:
            path = waiting.pop(0)
            looked += 1
            folder = "/".join((self._root, *path))
            data = yield from self._open(folder, "SKILL.md")
            if isinstance(data, bytes):
                found.append((folder, "/".join(path[:-1]) or None, data))
            elif len(path) <= MAX_DEPTH:
                waiting += [(*path, name) for name in (yield from self._folders(path))]
        return found

    def _folders(self, path: tuple[str, ...]) -> Flow[tuple[str, ...]]:
        engine = self._engine
        listed = yield from run_operation(
            engine, Compute(engine.new_op(), "list_folders", ("/".join((self._root, *path)),))
        )
        names = listed if isinstance(listed, tuple) else ()
        return tuple(str(name) for name in names if not str(name).startswith("."))

    def _open(self, folder: str, name: str) -> Flow[bytes | Failure]:
        """Return the content of a regular file in `folder`, by real paths.

        Return a `Failure` for any other file, and for one that cannot be read or is too large.
        """
        engine = self._engine
        if "\x00" in name or name.startswith("/"):
            return OUTSIDE
        opened = yield from run_operation(engine, OpenFile(engine.new_op(), f"{folder}/{name}"))
        if isinstance(opened, Failure):
            return opened
        try:
            root = yield from self._real_path(folder)
            if not opened.regular or root is None or not is_within(normal_path(opened.real_path), (root,)):
                return OUTSIDE
            if opened.size > MAX_FILE:
                return Failure(FailureKind.TOO_LARGE, f"more than {MAX_FILE} bytes")
            return (yield from run_operation(engine, ReadFile(engine.new_op(), opened.handle, 0, MAX_FILE)))
        finally:
            engine.emit(ReleaseFile(opened.handle))

    def _real_path(self, folder: str) -> Flow[str | None]:
        engine = self._engine
        opened = yield from run_operation(engine, OpenFile(engine.new_op(), folder))
        if isinstance(opened, Failure):
            return None
        engine.emit(ReleaseFile(opened.handle))
        return normal_path(opened.real_path)

    def _parse(self, folder: str, category: str | None, data: bytes) -> Flow[Skill]:
        engine = self._engine
        content = data.decode("utf-8", "replace").replace("\r\n", "\n").removeprefix("\ufeff")
        front = _FRONT.match(content)
        members: object = {}
        if front is not None:
            members = yield from run_operation(engine, Compute(engine.new_op(), "yaml.load", (front[1],)))
        known = JsonObject.of(members)
        return Skill(
            name=known.text("name") if known.first_text("name") else folder.rpartition("/")[2],
            description=_line(known.text("description")) or _first_line(content[front.end() :] if front else content),
            category=category,
            folder=folder,
            content=content,
            tags=_names(known.get("tags")),
            related=_names(known.get("related_skills")),
        )


def _line(text: str) -> str:
    return " ".join(text.split())[:MAX_DESCRIPTION]


def _first_line(content: str) -> str:
    lines = (line.strip("# \t") for line in content.splitlines())
    return _line(next((line for line in lines if line), ""))


def _names(value: object) -> tuple[str, ...]:
    text = as_text(value)
    names = (as_array(value) or []) if text is None else text.split(",")
    return tuple(str(name).strip() for name in names[:MAX_NAMES] if str(name).strip())


def _linked(content: str) -> dict[str, object] | None:
    """Return the files that a skill's text names, by folder, at most `MAX_NAMES`; None if there are none."""
    found: dict[str, list[str]] = {}
    for path in list(dict.fromkeys(_LINK.findall(content)))[:MAX_NAMES]:
        if ".." not in path.split("/"):
            found.setdefault(path.partition("/")[0], []).append(path)
    return {**found} or None
