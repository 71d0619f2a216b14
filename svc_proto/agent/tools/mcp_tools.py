"""Tools of MCP servers as tools of the agent, and conversion of their results to text.

A server's text is foreign content. A tool's description is shortened, cleaned and marked as the server's. A result
taints the turn like a screen or a web page. Each call needs approval, except tools in the configuration's `auto` and
read-only tools of a trusted server. An approval "always" holds for one definition of the tool at that server: a
changed definition needs a new approval.
"""

import re
from base64 import b64decode
from collections.abc import Callable, Iterable, Mapping
from itertools import islice

from svc_proto.agent.foreign_text import neutralize
from svc_proto.agent.mcp_config import McpServerConfig
from svc_proto.agent.tools.tool import Arguments, Tool, ToolImage, ToolResult
from svc_proto.basics import strict_json
from svc_proto.basics.entropy import sha256_hex
from svc_proto.basics.errors import ToolError
from svc_proto.basics.sanitize import sanitize_line, sanitize_text
from svc_proto.engine.flow import Flow
from svc_proto.machines.inbox import image_type
from svc_proto.schema.json_object import JsonObject, as_array, as_object, as_text
from svc_proto.service_clients.mcp_http_transport import HttpParameters

__all__ = ["GROUP", "PREFIX", "Run", "parse_tool_result", "tools_of"]

PREFIX = "mcp_"
GROUP = "mcp"
MAX_TOOLS = 64  # of one server
MAX_BYTES = 48 * 1024  # of one server's tool definitions for a model
MAX_SCHEMA = 8 * 1024  # of one tool's parameters
MAX_NAME = 64  # characters; the limit of model servers
MAX_SAID = 800  # characters of a tool's description
MAX_WORDS = 300  # characters of a text in a schema
MAX_DEPTH = 10  # of a schema
MAX_MEMBERS = 128  # of one object or array in a schema
MAX_BLOCKS = 200  # of one result
MAX_PICTURES = 4  # of one result for the model
MAX_PICTURE = 4 * 1024 * 1024  # characters of base64 of each picture
MAX_FAILURE = 4_000  # characters of a failed call's text
_UNFIT = re.compile("[^A-Za-z0-9_-]")
_BASE64 = re.compile("[A-Za-z0-9+/]+={0,2}")
_MARKER = re.compile(r"^(\s*)MEDIA:", re.MULTILINE | re.IGNORECASE)
Run = Callable[[str, Arguments], Flow[ToolResult]]


def tools_of(config: McpServerConfig, rows: Iterable[JsonObject], run: Run) -> tuple[tuple[Tool, ...], int]:
    """Convert a server's list to enabled tools; return also how many are left out.

    Left out are tools beyond the limits, unusable ones, and those whose name another one has. Disabled tools and those
    without a name are not counted. `run` calls a tool by the server's name for it.
    """
    tools: dict[str, Tool] = {}
    left_out = size = 0
    for row in rows:
        raw = row.text("name")
        if not raw or not config.is_tool_enabled(raw):
            continue
        tool = _tool(config, raw, row, run)
        told = 0 if tool is None else len(tool.description) + len(strict_json.dumps(tool.parameters))
        if tool is None or tool.name in tools or len(tools) >= MAX_TOOLS or size + told > MAX_BYTES:
            left_out += 1
            continue
        size += told
        tools[tool.name] = tool
    return tuple(tools.values()), left_out


def parse_tool_result(result: JsonObject) -> ToolResult:
    """Convert a result to text and images. Raises `ToolError` if the server reports an error."""
    failed, pictures = result.get("isError") is True, list[ToolImage]()
    pieces = [_block(block, None if failed else pictures) for block in _blocks(result)[:MAX_BLOCKS]]
    if not pieces and (data := result.get("structuredContent")) is not None:
        pieces = [strict_json.dumps(data)]
    text = _MARKER.sub(r"\1MEDIA :", sanitize_text("\n".join(pieces)))  # only our own phone may use markers
    if failed:
        text = text or "the tool failed, and does not say why"
        raise ToolError(text if len(text) <= MAX_FAILURE else f"{text[:MAX_FAILURE]}… [cut]")
    return ToolResult(text or "(the result is empty)", tuple(pictures))


def _tool(config: McpServerConfig, raw: str, row: JsonObject, run: Run) -> Tool | None:
    parameters = _parameters(row.get_object("inputSchema"))
    if len(strict_json.dumps(parameters)) > MAX_SCHEMA:
        return None
    reads_only = config.trust and row.get_object("annotations").get("readOnlyHint") is True

    def call(arguments: Arguments) -> Flow[ToolResult]:
        return run(raw, arguments)

    return Tool(
        name=_name(config.slug, raw),
        description=f"[MCP server {config.name}] {_words(row.text('description', 'title'), MAX_SAID)}".strip(),
        parameters=parameters,
        run=call,
        needs_approval=None if reads_only or raw in config.auto else f"It is a tool of the MCP server {config.name}.",
        edition=_edition(config, row),
        source=f"MCP server {config.name}",
        pass_through=True,
        group=GROUP,
    )


def _name(slug: str, raw: str) -> str:
    """Return `mcp_<server>_<tool>`; a long or unfit name is cut, has `_` for unfit characters, and ends with a hash."""
    start = f"{PREFIX}{slug}_"
    if not _UNFIT.search(raw) and len(start) + len(raw) <= MAX_NAME:
        return start + raw
    digest = sha256_hex(raw)[:8]
    return f"{(start + _UNFIT.sub('_', raw))[: MAX_NAME - 1 - len(digest)]}_{digest}"


def _edition(config: McpServerConfig, row: JsonObject) -> str:
    way = config.transport
    where = way.url if isinstance(way, HttpParameters) else strict_json.dumps(way.argv)
    said = [where, *map(row.get, ("name", "title", "description", "inputSchema", "outputSchema", "annotations"))]
    return sha256_hex(strict_json.dumps(said))[:12]


def _parameters(given: JsonObject) -> Mapping[str, object]:
    """Return a sanitized schema of an object."""
    found = _clean_members(given, MAX_DEPTH)
    properties = JsonObject.of(found.get("properties"))
    found |= {"type": "object", "properties": {name: JsonObject.of(value) for name, value in properties.items()}}
    if "required" in found:
        found["required"] = [name for name in JsonObject.of(found).texts("required") if name in properties]
    return found


def _clean(value: object, depth: int) -> object:
    if (members := as_object(value)) is not None:
        return _clean_members(members if depth else {}, depth)
    if (items := as_array(value)) is not None:
        return [_clean(item, depth - 1) for item in (items[:MAX_MEMBERS] if depth else ())]
    return value if (text := as_text(value)) is None else _words(text, MAX_WORDS)


def _words(text: str, limit: int) -> str:
    """Return a server's text on one line, without marks that a model's server acts on."""
    return neutralize(sanitize_line(text, limit))


def _clean_members(members: Mapping[str, object], depth: int) -> dict[str, object]:
    first = islice(members.items(), MAX_MEMBERS)
    return {name: _clean(member, depth - 1) for name, member in first if sanitize_line(name) == name}


def _blocks(result: JsonObject) -> list[JsonObject]:
    """Return the blocks of a result. Servers in use also write one block without a list, or plain text."""
    content = result.get("content")
    rows = [content] if (found := as_array(content)) is None else found
    blocks = ({"type": "text", "text": text} if (text := as_text(row)) is not None else as_object(row) for row in rows)
    return [JsonObject(block) for block in blocks if block]


def _block(block: JsonObject, pictures: list[ToolImage] | None) -> str:
    """Return the text of a block; append an image to `pictures` if it fits and `pictures` is not None."""
    match block.get("type"):
        case "text":
            return block.text("text")
        case "resource":
            inner = block.get_object("resource")
            return inner.text("text") or _file(f"a file, {sanitize_line(inner.text('uri'))}", inner, "blob", pictures)
        case "resource_link":
            return f"[a link: {sanitize_line(block.text('title', 'name'))} {sanitize_line(block.text('uri'))}]"
        case "image":
            return _file("a picture", block, "data", pictures)
        case kind:
            return _file("a sound" if kind == "audio" else "something", block, "data", None)


def _file(what: str, block: JsonObject, name: str, pictures: list[ToolImage] | None) -> str:
    """Return a description of a block that is no text, and append it to `pictures` if it is an image that fits.

    The type of an image is detected from its bytes.
    """
    data = block.text(name)
    there = pictures is not None and len(pictures) < MAX_PICTURES and len(data) <= MAX_PICTURE
    kind = image_type(_start_of(data)) if there else None
    if pictures is None or kind is None:
        about = filter(None, (what, sanitize_line(block.text("mimeType"), 60), f"{3 * len(data) // 4} bytes"))
        return f"[{', '.join(about)}: not shown]"
    pictures.append(ToolImage(f"image/{kind}", data))
    return f"[{what}, image/{kind}, {3 * len(data) // 4} bytes: picture {len(pictures)} of this result, shown once]"


def _start_of(data: str) -> bytes:
    """Decode the first bytes of valid base64; return nothing for other text."""
    return b64decode(data[:64]) if _BASE64.fullmatch(data) and len(data) % 4 == 0 else b""
