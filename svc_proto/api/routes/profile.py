"""Routes of the profile inspector: settings, system prompt ("soul"), notes, skills and picture of the agent.

There is one profile; any other name gets a 404.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from svc_proto.agent.avatar import read_avatar
from svc_proto.agent.memory import FILES, TARGETS, file_content
from svc_proto.agent.system_prompt import notes_part, skills_part
from svc_proto.api.access import ApiAccess
from svc_proto.api.errors import invalid_request
from svc_proto.api.gateway.sessions import PROFILE
from svc_proto.api.model_config_file import parse_prompt
from svc_proto.api.ports import ManagementPort
from svc_proto.basics.errors import Refused
from svc_proto.basics.validate import text
from svc_proto.engine.flow import Flow
from svc_proto.engine.message import JsonResponse, Request, Response, json_response
from svc_proto.engine.router import Handler, Route
from svc_proto.facts import Failure
from svc_proto.wire.events import Headers

if TYPE_CHECKING:
    from svc_proto.openapi import profile_operations as types

__all__ = ["routes"]

FILE_NAMES = {FILES[target].rpartition("/")[2]: target for target in TARGETS}


def routes(api: ManagementPort) -> list[Route]:
    """Return the routes of the profile inspector."""
    view = _ProfileRoutes(api)
    one = "/api/profiles/{profile}"
    rows: list[tuple[str, str, Handler]] = [
        ("GET", f"{one}/config", view.config),
        ("GET", f"{one}/skills", view.skills),
        ("GET", f"{one}/soul", view.soul),
        ("PUT", f"{one}/soul", view.write_soul),
        ("GET", f"{one}/memory", view.memory),
        ("PUT", f"{one}/memory/{{filename}}", view.write_memory),
        ("GET", f"{one}/avatar", view.avatar),
        ("GET", f"{one}/context", view.context),
    ]
    return [
        Route(
            method=method,
            pattern=pattern,
            access=ApiAccess.KEY if method == "GET" else ApiAccess.MANAGE,
            handler=handler,
        )
        for method, pattern, handler in rows
    ]


class _ProfileRoutes:
    def __init__(self, api: ManagementPort) -> None:
        self._api = api

    # --- settings ---

    def config(self, request: Request) -> Flow[JsonResponse[types.ProfileConfigJson]]:
        """Return the part of the configuration file that clients may see, and the file's path."""
        _check_profile(request)
        settings = yield from self._api.settings()
        return json_response(
            200, {"profile": PROFILE, "path": self._config_path, "config": settings.shown, "readonly": True}
        )

    def soul(self, request: Request) -> Flow[JsonResponse[types.SoulJson]]:
        """Return the system prompt of the agent."""
        _check_profile(request)
        content = (yield from self._api.settings()).system
        body: types.SoulJson = {
            "profile": PROFILE,
            "path": self._config_path,
            "content": content,
            "exists": bool(content),
            "size_bytes": _size(content),
            "truncated": False,
        }
        return json_response(200, body)

    def write_soul(self, request: Request) -> Flow[JsonResponse[types.FileWrittenJson]]:
        """Change the system prompt of the agent in the configuration file."""
        _check_profile(request)
        content = request.json_object().get("content")
        yield from self._api.change_settings(request, parse_prompt(content, "content"))
        return _written(self._config_path, str(content))

    # --- notes and skills ---

    def memory(self, request: Request) -> Flow[JsonResponse[types.NoteFilesJson]]:
        """Return the lists of notes as files."""
        _check_profile(request)
        notes = yield from self._notes()
        files: list[types.NoteFileJson] = [
            {
                "name": target,
                "filename": filename,
                "path": self._path(FILES[target]),
                "content": content,
                "size_bytes": _size(content),
            }
            for filename, target in FILE_NAMES.items()
            for content in (file_content(notes[target]),)
        ]
        folder = self._path("memories")
        return json_response(200, {"profile": PROFILE, "memories_dir": folder, "entries": files, "total": len(files)})

    def write_memory(self, request: Request) -> Flow[JsonResponse[types.FileWrittenJson]]:
        """Replace a list of notes by the given content of its file.

        Raises `Refused` 404 for another file, 400 for content that is not accepted, and 503 if it cannot be stored.
        """
        _check_profile(request)
        content = text(request.json_object().get("content"), "content")
        target = FILE_NAMES.get(request.params["filename"])
        if target is None:
            raise Refused(404, "not_found", f"the files are {', '.join(FILE_NAMES)}")
        change = yield from self._api.parts.memory.rewrite(target, content)
        if change.status == 400:
            raise invalid_request(change.text)
        if change.status != 200:
            raise _unavailable()
        self._api.memory_changed(request, change)
        return _written(self._path(FILES[target]), content)

    def skills(self, request: Request) -> Flow[JsonResponse[types.ProfileSkillsJson]]:
        """List the skills; all of them are enabled."""
        _check_profile(request)
        found = yield from self._api.parts.skills.list()
        rows: list[types.ProfileSkillJson] = [{**skill.row, "path": skill.path, "enabled": True} for skill in found]
        return json_response(200, {"profile": PROFILE, "skills": rows, "total": len(rows)})

    def context(self, request: Request) -> Flow[JsonResponse[types.InjectedContextJson]]:
        """Return texts that a model gets beside the chat: system prompt, notes, and list of skills.

        Empty texts are left out; the list has the first 50 skills. `enabled` is false if no model is configured.
        """
        _check_profile(request)
        settings = yield from self._api.settings()
        notes = notes_part((yield from self._notes()))
        found = yield from self._api.parts.skills.list()
        listed = skills_part([(skill.name, skill.description) for skill in found])
        parts = {"system prompt": settings.system, "notes": notes, "skills": listed}
        blocks: list[types.ContextBlockJson] = [{"name": name, "text": part} for name, part in parts.items() if part]
        return json_response(200, {"enabled": settings.endpoint is not None, "blocks": blocks})

    def avatar(self, request: Request) -> Flow[Response]:
        """Return the agent's picture. Raises `Refused` 404 without one."""
        _check_profile(request)
        found = yield from read_avatar(self._api.engine)
        if found is None:
            raise Refused(404, "not_found", "the agent has no picture")
        return Response(200, Headers(((b"content-type", found.kind.encode("ascii")),)), found.data)

    # --- helpers ---

    @property
    def _config_path(self) -> str:
        return self._api.config.config_path

    def _path(self, name: str) -> str:
        return f"{self._api.config.home}/{name}"

    def _notes(self) -> Flow[dict[str, tuple[str, ...]]]:
        notes: dict[str, tuple[str, ...]] = {}
        for target in TARGETS:
            entries = yield from self._api.parts.memory.entries(target)
            if isinstance(entries, Failure):
                raise _unavailable()
            notes[target] = entries
        return notes


def _check_profile(request: Request) -> None:
    if request.params["profile"] != PROFILE:
        raise Refused(404, "not_found", f"this service runs the profile {PROFILE!r} only")


def _unavailable() -> Refused:
    return Refused(503, "memory_unavailable", "the memory store is not available")


def _size(content: str) -> int:
    return len(content.encode())


def _written(path: str, content: str) -> JsonResponse[types.FileWrittenJson]:
    return json_response(200, {"ok": True, "profile": PROFILE, "path": path, "bytes_written": _size(content)})
