"""Tools for the agent's memory and for the operator's skills."""

from svc_proto.agent.memory import TARGETS, AgentMemory
from svc_proto.agent.skills import SkillLibrary
from svc_proto.agent.tools.tool import Arguments, MemoryToolResult, Tool, Toolset, schema
from svc_proto.basics import strict_json
from svc_proto.basics.errors import ToolError
from svc_proto.engine.flow import Flow
from svc_proto.service_clients.authority import MANAGE

__all__ = ["memory_tools", "skill_tools"]


def memory_tools(memory: AgentMemory) -> Toolset:
    """Return the toolset of the tool `memory`. After the model has read foreign content, a change needs approval."""

    def run(arguments: Arguments) -> Flow[str | MemoryToolResult]:
        action, target = str(arguments["action"]), str(arguments.get("target", "memory"))
        content, old_text = str(arguments.get("content", "")), str(arguments.get("old_text", ""))
        match action:
            case "add":
                change = yield from memory.add(target, content)
            case "replace":
                change = yield from memory.replace(target, old_text, content)
            case _:
                change = yield from memory.remove(target, old_text)
        if change.status != 200:
            raise ToolError(strict_json.dumps(change.body))
        text = strict_json.dumps(change.body)
        return text if change.note is None else MemoryToolResult(text, change.note)

    tool = Tool(
        name="memory",
        description=(
            "Keep notes between chats: add one; replace or remove the one with old_text. "
            "target memory is for your own notes, user for what you know about the person. "
            "Store lasting facts and wishes, not what only matters now."
        ),
        parameters=schema(
            ("action",),
            action={"type": "string", "enum": ["add", "replace", "remove"]},
            target={"type": "string", "enum": list(TARGETS), "description": "memory unless given"},
            content={"type": "string", "description": "the note, for add and replace"},
            old_text={"type": "string", "description": "a part of the note to replace or remove"},
        ),
        run=run,
        needs_approval_after_reading=(
            "After reading what others wrote, the agent wants to keep a note for all later chats."
        ),
        reads_foreign_content=False,
        hidden_by_default=("target",),
    )
    return Toolset(name="memory", label="Memory", description="Notes kept between chats", tools=(tool,), needs=MANAGE)


def skill_tools(skills: SkillLibrary) -> Toolset:
    """Return the toolset of `skills_list` and `skill_view`."""

    def list_them(arguments: Arguments) -> Flow[str]:
        found = yield from skills.list()
        rows = [skill.row for skill in found if arguments.get("category") in (None, skill.category)]
        return strict_json.dumps({"skills": rows, "count": len(rows)})

    def view(arguments: Arguments) -> Flow[str]:
        path = arguments.get("file_path")
        found = yield from skills.read(str(arguments["name"]), None if path is None else str(path))
        if found["success"] is not True:
            raise ToolError(strict_json.dumps(found))
        return strict_json.dumps(found)

    listing = Tool(
        name="skills_list",
        description="List the skills there are: instructions for special tasks, with name and description.",
        parameters=schema(category={"type": "string"}),
        group="skills",
        run=list_them,
        reads_foreign_content=False,
    )
    viewing = Tool(
        name="skill_view",
        description="Read a skill before doing what it is about, or one of the files that belong to it.",
        parameters=schema(
            ("name",),
            name={"type": "string"},
            file_path={"type": "string", "description": "such as references/api.md; the skill itself unless given"},
        ),
        run=view,
        group="skills",
        reads_foreign_content=False,  # written by the operator
    )
    return Toolset(name="skills", label="Skills", description="Instructions for tasks", tools=(listing, viewing))
