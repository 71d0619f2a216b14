"""Features of an MCP server (tools, resources, prompts) as data and flows, and the handlers of their methods.

The `ToolError` of a tool call is returned as a result, for the model.
"""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from math import inf
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar, cast

from attrs import frozen

from svc_proto.agent.approval_memory import describe_call
from svc_proto.agent.tools.arguments import check_arguments
from svc_proto.agent.tools.tool import Arguments, Tool
from svc_proto.basics import strict_json
from svc_proto.basics.errors import ToolError
from svc_proto.basics.expiring_map import ExpiringMap
from svc_proto.engine.core import Engine
from svc_proto.engine.flow import Deferred, Flow, wait
from svc_proto.engine.sync import Lock
from svc_proto.mcp.subscriptions import ListenRequest, Resource
from svc_proto.schema.json_object import JsonObject
from svc_proto.schema.json_rpc import INVALID_PARAMS, RpcError
from svc_proto.schema.mcp_messages import NOT_FOUND

if TYPE_CHECKING:
    from svc_proto.mcp.pending_request import PendingRequest

__all__ = [
    "RequestHandlers",
    "ConfirmCallback",
    "Content",
    "DirectTool",
    "ToolContent",
    "InputRequired",
    "ServerFeatures",
    "ServerTool",
    "Prompt",
    "Result",
    "ProgressCallback",
    "ResourceTemplate",
]

Content: TypeAlias = Mapping[str, object]  # a content block: `{"type": "text", ...}`, `{"type": "image", ...}`
Result: TypeAlias = Mapping[str, object] | str  # members of a result, or JSON with at least one member
# Result of a tool: blocks, or an object as JSON, which is sent both as text and as an object.
ToolContent: TypeAlias = "Sequence[Content] | str"
# Tool, arguments and question to the user's answer.
ConfirmCallback: TypeAlias = "Callable[[str, Arguments, str], Flow[bool]]"
ProgressCallback: TypeAlias = "Callable[[str], None]"  # reports the progress of a call
Row = TypeVar("Row")
Handler: TypeAlias = "Callable[[JsonObject, PendingRequest], Flow[Result] | Deferred | Result]"

NO_APPROVER = (
    "This needs the user's approval, and no user can be asked: the phone does not ask about it by itself, and this "
    "client cannot ask (elicitation). Tell the user; do not try the same by other means."
)
READ_ONLY = (
    "This token may only look (scope bridge:read), and this tool acts. Tell the user, who may connect this server anew "
    "with the scope bridge."
)
MAX_ASKED = 32  # unanswered questions of the stateless mode; the oldest is dropped
DENIED = "The user denied this, or did not answer. Stop here and tell the user; do not try the same by other means."


@frozen
class DirectTool:
    """A tool that waits for one event only, and so needs no flow.

    `begin` takes the arguments and a callback for the outcome. If the outcome is known at once, `begin` returns it and
    the callback is not called. `found` converts an outcome to the result. Both may raise `ToolError`. `prepare` returns
    a flow that must end before `begin`, or None.
    """

    begin: Callable[[Arguments, Callable[[Any], bool]], Any]
    found: Callable[[Arguments, Any], ToolContent]
    prepare: Callable[[Arguments], Flow[None] | None] = lambda arguments: None


@frozen(kw_only=True)
class ServerTool:
    """A tool with the hints that clients display (read-only, destructive). `run` may raise `ToolError`."""

    tool: Tool
    title: str
    reads_only: bool
    destructive: bool
    run: Callable[[Arguments], Flow[ToolContent]] | DirectTool
    # As `run`, with a callback for progress.
    run_with_progress: Callable[[Arguments, ProgressCallback], Flow[ToolContent]] | None = None


@frozen(kw_only=True)
class ResourceTemplate:
    """Resources of one kind: `find` returns the one of a URI, if the URI fits."""

    uri: str  # with variables in braces, RFC 6570
    name: str
    description: str
    media_type: str
    find: Callable[[str], Resource | None]


@frozen(kw_only=True)
class Prompt:
    """A task as text, with variables in braces that arguments replace."""

    name: str
    description: str
    text: str
    arguments: Mapping[str, str] = {}  # descriptions by name; all arguments are required


@frozen(kw_only=True)
class ServerFeatures:
    """Tools, resources, prompts and instructions that an MCP server offers."""

    name: str
    title: str
    version: str
    instructions: str
    tools: Sequence[ServerTool] = ()
    resources: Sequence[Resource] = ()
    templates: Sequence[ResourceTemplate] = ()
    prompts: Sequence[Prompt] = ()
    may_act: Callable[[], bool] = lambda: True  # checked at each call; if False, only read-only tools are available


class InputRequired(Exception):  # noqa: N818 - an answer, not an error
    """Exception that answers a call with a question for the client's user (2026-07-28, InputRequiredResult).

    The client then repeats the call with the user's answer.
    """

    def __init__(self, result: Result) -> None:
        super().__init__("input required")
        self.result = result


class RequestHandlers:
    """Handlers by method for one client, and its open questions of the stateless mode."""

    def __init__(self, engine: Engine, offer: ServerFeatures) -> None:
        self.offer = offer
        self.info = {"name": offer.name, "title": offer.title, "version": offer.version}
        self.meta = strict_json.dumps({"io.modelcontextprotocol/serverInfo": self.info})  # of each result, 2026-07-28
        self._engine = engine
        self.listening: dict[ListenRequest, None] = {}  # of the stateless mode
        self._pending: ExpiringMap[str, tuple[str, Arguments]] = ExpiringMap(MAX_ASKED)  # open questions by state
        self._tools = {offered.tool.name: offered for offered in offer.tools}
        self._resources = {resource.uri: resource for resource in offer.resources}
        self._prompts = {prompt.name: prompt for prompt in offer.prompts}
        self._line = Lock(engine)  # actions on the screen keep the order of the calls
        self.handlers: Mapping[str, Handler] = {
            "tools/list": self._list_tools,
            "tools/call": self._call,
            "resources/list": partial(_list, "resources", _shown_resource, offer.resources),
            "resources/templates/list": partial(_list, "resourceTemplates", _shown_template, offer.templates),
            "resources/read": self._read,
            "prompts/list": partial(_list, "prompts", _shown_prompt, offer.prompts),
            "prompts/get": self._prompt,
        }

    def capabilities(self) -> dict[str, object]:
        """Return the server's capabilities and instructions, for the answer to a handshake or to `server/discover`."""
        offer = self.offer
        offered = {"tools": offer.tools, "resources": offer.resources, "prompts": offer.prompts}
        capabilities = {name: dict[str, object]() for name, there in offered.items() if there}
        if any(resource.watch for resource in offer.resources):
            capabilities["resources"]["subscribe"] = True
        return {"capabilities": capabilities, "instructions": offer.instructions}

    # --- updates in the stateless mode ---

    def subscribable_resources(self, uris: Iterable[str]) -> dict[str, Resource]:
        """Return those of the listed resources with these URIs that support change notifications, by URI."""
        found = (self._resources.get(uri) for uri in uris)
        return {resource.uri: resource for resource in found if resource is not None and resource.watch is not None}

    def set_paused(self, holding: bool) -> None:
        """Pause or resume the notifications of all listening requests."""
        for each in self.listening:
            each.set_paused(holding)

    def stop(self) -> None:
        """End all listening requests; each gets its answer."""
        for each in [*self.listening]:
            each.stop()

    # --- questions in the stateless mode ---

    def remember_question(self, name: str, arguments: Arguments) -> str:
        """Store a call that awaits the user's answer; return the state with which the client repeats the call."""
        state = self._engine.entropy(16).hex()
        self._pending.put(state, (name, arguments), None)
        return state

    def consume_question(self, state: str, name: str, arguments: Arguments) -> bool:
        """Report whether a state belongs to a call of this tool with these arguments. Either way it is used up."""
        return self._pending.pop(state, 0.0) == (name, arguments)

    # --- tools ---

    def _list_tools(self, params: JsonObject, call: PendingRequest) -> Result:
        acts = self.offer.may_act()
        rows = [row for row in self.offer.tools if acts or row.reads_only]
        return _list("tools", _shown_tool, rows, params, call)

    def _call(self, params: JsonObject, call: PendingRequest) -> Flow[Result] | Deferred | Result:
        offered = self._tools.get(params.text("name"))
        if offered is None:
            raise RpcError(INVALID_PARAMS, f"no tool {str(params.get('name'))[:100]!r}")
        given = params.object_or_none("arguments") if "arguments" in params else JsonObject()
        if given is None:
            raise RpcError(INVALID_PARAMS, "arguments must be an object")
        tool, run = offered.tool, offered.run
        try:
            if not offered.reads_only and not self.offer.may_act():
                raise ToolError(READ_ONLY)
            arguments: Arguments = check_arguments(tool.parameters, given)
            if (
                type(run) is not DirectTool
                or tool.needs_approval is not None
                or run.prepare(arguments) is not None
                or (tool.is_act and not self._line.try_acquire())
            ):
                return self._carry_out(offered, arguments, call)
            begun = _PendingToolCall(run, arguments, self._line if tool.is_act else None)
            try:
                outcome = run.begin(arguments, begun.resolve)
            except Exception:
                begun.cancel()
                raise
            return begun if outcome is None else begun.to_result(outcome)
        except ToolError as failed:
            return _refusal(failed)

    def _carry_out(self, offered: ServerTool, arguments: Arguments, call: PendingRequest) -> Flow[Result]:
        tool = offered.tool
        try:
            if tool.needs_approval is not None:
                arguments = yield from self._allow(offered, tool.needs_approval, arguments, call.confirm)
            if tool.is_act:
                yield from self._line.acquire()
            try:
                return _result_of((yield from self._run(offered, arguments, call.report_progress)))
            finally:
                if tool.is_act:
                    self._line.release()
        except ToolError as failed:
            return _refusal(failed)

    def _run(self, offered: ServerTool, arguments: Arguments, telling: ProgressCallback | None) -> Flow[ToolContent]:
        run = offered.run
        if telling is not None and offered.run_with_progress is not None:
            return (yield from offered.run_with_progress(arguments, telling))
        if not isinstance(run, DirectTool):
            return (yield from run(arguments))
        preparation = run.prepare(arguments)
        if preparation is not None:
            yield from preparation
        ticket = self._engine.new_op()
        outcome = run.begin(arguments, partial(self._engine.resume, ticket))
        return run.found(arguments, (yield from wait(ticket, inf)) if outcome is None else outcome)

    def _allow(
        self, offered: ServerTool, why: str, arguments: Arguments, asking: ConfirmCallback | None
    ) -> Flow[Arguments]:
        """Have the client's user approve a call; return its arguments.

        Raises `ToolError` if denied or if the client cannot ask its user, and `InputRequired` if the client has to
        repeat the call with the user's answer.

        If the phone requests the approval itself, none is requested here, and the returned arguments are marked for
        that.
        """
        tool = offered.tool
        bound = None if tool.requests_own_approval is None else (yield from tool.requests_own_approval(arguments))
        if bound is not None:
            return bound
        if asking is None:
            raise ToolError(NO_APPROVER)
        if not (yield from asking(tool.name, arguments, f"{offered.title}? {describe_call(tool, arguments)}\n{why}")):
            raise ToolError(DENIED)
        return arguments

    # --- resources ---

    def resource(self, params: JsonObject) -> Resource:
        """Return the resource, listed or from a template, that `uri` names. Raises `RpcError` if there is none."""
        uri = params.text("uri")
        found = (each.find(uri) for each in self.offer.templates)
        resource = self._resources.get(uri) or next(filter(None, found), None)
        if resource is None:
            raise RpcError(NOT_FOUND, "there is no such resource", data={"uri": str(params.get("uri"))[:300]})
        return resource

    def _read(self, params: JsonObject, call: PendingRequest) -> Flow[Result]:
        resource = self.resource(params)
        try:
            found = yield from resource.read()
        except ToolError as failed:
            raise RpcError(NOT_FOUND, str(failed), data={"uri": resource.uri}) from None
        text = {"text": found} if isinstance(found, str) else {"blob": b64encode(found).decode("ascii")}
        return {"contents": [{"uri": resource.uri, "mimeType": resource.media_type, **text}]}

    # --- prompts ---

    def _prompt(self, params: JsonObject, call: PendingRequest) -> Result:
        prompt, given = self._prompts.get(params.text("name")), params.get_object("arguments")
        if prompt is None:
            raise RpcError(INVALID_PARAMS, f"no prompt {str(params.get('name'))[:100]!r}")
        blanks = dict[str, str]()
        for blank in prompt.arguments:
            value = given.string(blank)
            if value is None:
                raise RpcError(INVALID_PARAMS, f"the argument {blank} must be a string")
            blanks[blank] = value
        text = re.sub(r"{(\w+)}", lambda blank: blanks[blank[1]], prompt.text)
        message = {"role": "user", "content": {"type": "text", "text": text}}
        return {"description": prompt.description, "messages": [message]}


class _PendingToolCall(Deferred):
    """A direct tool call under way; for an action it holds the lock until its outcome or until it is cancelled."""

    __slots__ = ("_arguments", "_line", "_run")

    def __init__(self, run: DirectTool, arguments: Arguments, line: Lock | None) -> None:
        self._on_result = None
        self._run = run
        self._arguments = arguments
        self._line = line

    def to_result(self, outcome: object) -> Result:
        """Release the lock, and convert the outcome to the tool's result or error."""
        if self._line is not None:
            self._release_lock()
        try:
            return _result_of(self._run.found(self._arguments, outcome))
        except ToolError as failed:
            return _refusal(failed)

    def cancel(self) -> None:
        """Release the lock; the outcome is not needed any more."""
        if self._line is not None:
            self._release_lock()
        super().cancel()

    def _release_lock(self) -> None:
        line, self._line = cast("Lock", self._line), None
        line.release()


def _result_of(found: ToolContent) -> Result:
    if not isinstance(found, str):
        return {"content": list(found), "isError": False}
    text = strict_json.quoted(found)
    return f'{{"content":[{{"type":"text","text":{text}}}],"structuredContent":{found},"isError":false}}'


def _refusal(failed: ToolError) -> Result:
    return {"content": [{"type": "text", "text": str(failed)}], "isError": True}


def _list(
    name: str,
    show: Callable[[Row], Result],
    rows: Sequence[Row],
    params: JsonObject,
    call: PendingRequest,
) -> Result:
    """Return all rows of a list in one page. Raises `RpcError` for a cursor, since no page follows."""
    if params.get("cursor") is not None:
        raise RpcError(INVALID_PARAMS, "there is no such cursor")
    return {name: [show(row) for row in rows]}


def _shown_tool(offered: ServerTool) -> Result:
    hints = {
        "title": offered.title,
        "readOnlyHint": offered.reads_only,
        "destructiveHint": offered.destructive,
        "idempotentHint": offered.reads_only,
        "openWorldHint": True,
    }
    tool = offered.tool
    about = {"name": tool.name, "title": offered.title, "description": tool.description}
    return {**about, "inputSchema": tool.parameters, "annotations": hints}


def _shown_resource(resource: Resource) -> Result:
    about = {"uri": resource.uri, "name": resource.name, "description": resource.description}
    return {**about, "mimeType": resource.media_type}


def _shown_template(template: ResourceTemplate) -> Result:
    about = {"uriTemplate": template.uri, "name": template.name, "description": template.description}
    return {**about, "mimeType": template.media_type}


def _shown_prompt(prompt: Prompt) -> Result:
    arguments = [{"name": name, "description": text, "required": True} for name, text in prompt.arguments.items()]
    return {"name": prompt.name, "description": prompt.description, "arguments": arguments}
