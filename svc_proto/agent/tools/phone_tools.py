"""Tools for the phone: those of the Device Control table, called through the relay (wire bridge 3, 6).

Some tools need approval, such as those for calls and messages. If the phone itself requests a confirmation of these,
no approval is requested here.
"""

from base64 import b64encode
from collections.abc import Callable, Mapping
from functools import partial

from attrs import field, frozen

from svc_proto.agent.interface import StoredPicture
from svc_proto.agent.phone_consent import ConsentingPhoneControl
from svc_proto.agent.tools.phone_actions import PhoneActions
from svc_proto.agent.tools.phone_result import result_of
from svc_proto.agent.tools.tool import Arguments, Tool, ToolImage, ToolResult, Toolset, schema
from svc_proto.agent.turn_consent import CallConsent
from svc_proto.basics.brand import Brand
from svc_proto.basics.errors import ToolError
from svc_proto.engine.flow import Flow
from svc_proto.machines.inbox import image_type
from svc_proto.schema.device_control import ControlRoute, ControlTool, RouteEffect
from svc_proto.schema.device_control_routes import DEVICE_CONTROL
from svc_proto.schema.effects.command_effects import Effect, effect_of_command, needs_screen
from svc_proto.schema.effects.screen_tree import ScreenTree
from svc_proto.schema.json_object import JsonObject
from svc_proto.service_clients.authority import BRIDGE
from svc_proto.service_clients.phone_control import PhoneControl, PhoneResponse, RelayPhoneControl

__all__ = ["PHONE_TOOLS", "PICTURE_TOOLS", "PhoneTool", "run_phone_tool", "phone_tools", "tools_of"]

PICTURE_TOOLS = ("phone_screenshot",)  # names of the tools whose results name a picture
MAX_PICTURE = 4 * 1024 * 1024  # bytes of a picture for a model, or in a chat
# Arguments that the few tools omit. A model with a small context gets no pictures, so it needs no points.
HIDDEN_BY_DEFAULT = ("look", "x", "y", "index", "exact", "include_bounds", "class_name", "duration", "duration_ms")
DEVICE: Mapping[str, object] = {"type": "string", "description": "which phone, if there are several: its name or id"}


@frozen
class PhoneTool:
    """A tool of the phone, with the Device Control route that it calls.

    `perform` is used in place of a plain call, whose answer would be the result.
    """

    route: ControlRoute
    tool: ControlTool
    perform: Callable[[PhoneActions, Arguments], Flow[str]] | None = None
    parameters: Mapping[str, object] = field(init=False)  # built once for all toolboxes

    @parameters.default
    def _schema(self) -> Mapping[str, object]:
        return schema(self.tool.required, **self.tool.properties, device=DEVICE)

    @property
    def name(self) -> str:
        """Return the name without the prefix `phone_`."""
        return self.tool.name

    @property
    def phone_asks_user(self) -> bool:
        """Report whether the phone's gates confirm each command that needs an approval (wire bridge 5.2)."""
        return self.route.always_asks and self.tool.needs_approval is not None


def phone_tools(link: RelayPhoneControl, brand: Brand) -> Toolset:
    """Return the toolset of the phone's tools, which obtain the owner's consent to effects that need it."""
    return Toolset(
        name="phone",
        label="Phone",
        description="Device Control: look at the paired phone and act on it",
        configured=link.configured,
        needs=BRIDGE,
        available=link.is_phone_connected,
        hidden=link.unneeded_arguments,
        tools=_consenting_tools(link, brand),
    )


def tools_of(link: PhoneControl, brand: Brand) -> tuple[Tool, ...]:
    """Return the phone's tools, whose acts do not request the owner's consent."""
    actions = PhoneActions(link)
    return tuple(_tool(row, actions, link, brand) for row in PHONE_TOOLS)


def run_phone_tool(
    row: PhoneTool, actions: PhoneActions, link: PhoneControl, brand: Brand, arguments: Arguments
) -> Flow[str | PhoneResponse]:
    """Run a row on the phone: return the text of its result, or the route's answer. Raises `ToolError`."""
    if row.name == "return_to_app":
        return (yield from actions.return_to_app(brand.self_foreground, arguments))
    if row.perform is not None:
        return (yield from row.perform(actions, arguments))
    return (yield from link.call(row.route.method, row.route.path, arguments))


def _consenting_tools(link: RelayPhoneControl, brand: Brand) -> tuple[Tool, ...]:
    """Return the phone's tools. In a turn, a tool's commands go through `ConsentingPhoneControl`."""
    actions = PhoneActions(link)

    def with_consent(row: PhoneTool, consent: CallConsent) -> Tool:
        control = ConsentingPhoneControl(link, consent)
        return _tool(row, actions.over(control, consent.session_id), control, brand)

    return tuple(_tool(row, actions, link, brand, partial(with_consent, row)) for row in PHONE_TOOLS)


def _effect_of(row: PhoneTool, arguments: Arguments) -> Effect | None:
    path = row.route.path
    return None if needs_screen(path, arguments) else effect_of_command(path, arguments, ScreenTree())


def _tool(
    row: PhoneTool,
    actions: PhoneActions,
    link: PhoneControl,
    brand: Brand,
    with_consent: Callable[[CallConsent], Tool] | None = None,
) -> Tool:
    def run(arguments: Arguments) -> Flow[str | ToolResult]:
        answer = yield from run_phone_tool(row, actions, link, brand, arguments)
        if isinstance(answer, str):
            return answer
        text = result_of(row.name, answer, brand)
        return (yield from _with_picture(link, answer, text)) if row.name == "screenshot" else text

    return Tool(
        name=f"phone_{row.name}",
        description=row.tool.description,
        parameters=row.parameters,
        run=run,
        needs_approval=row.tool.needs_approval,
        requests_own_approval=link.gate_bound_arguments if row.phone_asks_user else None,
        effect_of=partial(_effect_of, row),
        source="" if row.tool.is_wordless else "phone",
        group=row.tool.group,
        is_rare=row.tool.is_rare,
        hidden_by_default=HIDDEN_BY_DEFAULT,
        sequential=True,
        is_act=row.route.effect is RouteEffect.ACTS,
        with_consent=with_consent,
    )


def _with_picture(link: PhoneControl, answer: PhoneResponse, text: str) -> Flow[ToolResult]:
    """Return a result of the text and the screenshot's image; of the text alone if the image cannot be used.

    The image is not used if it cannot be read, is too large, or has no known type.
    """
    token = JsonObject.of(answer.body).text("media").rpartition("/")[2]
    try:
        data = yield from link.media(token)
    except ToolError:
        return ToolResult(text)
    kind = image_type(data)
    if kind is None or len(data) > MAX_PICTURE:
        return ToolResult(text)
    picture = StoredPicture(token=token, kind=f"image/{kind}", data=data)
    return ToolResult(text, (ToolImage(picture.kind, b64encode(data).decode("ascii")),), (picture,))


PERFORMED: Mapping[str, Callable[[PhoneActions, Arguments], Flow[str]]] = {
    "screen": PhoneActions.screen,
    "find_nodes": PhoneActions.find_nodes,
    "describe_node": PhoneActions.describe_node,
    "get_apps": PhoneActions.get_apps,
    "tap": PhoneActions.tap,
    "set_bar": PhoneActions.set_bar,
    "tap_text": PhoneActions.tap_text,
    "long_press": PhoneActions.long_press,
    "drag": PhoneActions.drag,
    "type": PhoneActions.type_text,
    "swipe": PhoneActions.swipe,
    "scroll": PhoneActions.scroll,
    "press_key": PhoneActions.press_key,
    "wait": PhoneActions.wait,
    "open_app": PhoneActions.open_app,
}
"""Tools that are more than one call of their route."""
PHONE_TOOLS = tuple(
    PhoneTool(route, tool, PERFORMED.get(tool.name)) for route in DEVICE_CONTROL.values() for tool in route.tools
)
"""The tools in the order of the table; aliases of a route have none."""
