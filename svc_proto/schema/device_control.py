"""Types of the rows of the Device Control table (wire bridge 3 and 5.2): routes, their effects and their tools.

The rows are in `schema.device_control_routes`.
"""

from collections.abc import Mapping
from enum import Enum
from typing import TypeAlias

from svc_proto.basics.fast_frozen import fast_frozen
from svc_proto.schema.device_control_arguments import ArgumentRule

__all__ = ["ControlRoute", "ControlTool", "ScreenGesture", "PrivateContent", "RouteEffect"]

Properties: TypeAlias = Mapping[str, Mapping[str, object]]
NONE: Properties = {}


class RouteEffect(Enum):
    """Effect of a route on the phone."""

    READS = "reads"  # changes nothing
    ACTS = "acts"  # changes what the phone shows, or sends something
    CONFIGURES = "configures"  # changes only what later answers contain


class ScreenGesture(Enum):
    """Kind of input that a route performs on the screen."""

    PRESS = "press"  # presses one control, whose texts the verb gate inspects
    STROKE = "stroke"
    SCROLL = "scroll"  # moves content only
    TEXT = "text"
    KEY = "key"


class PrivateContent(Enum):
    """Kind of the owner's data in an answer."""

    RECORDS = "records"  # private by the route
    SCREEN = "screen"  # private by the app that is shown
    EVENTS = "events"  # as a screen; private by the route once the app is unknown


@fast_frozen(kw_only=True)
class ControlTool:
    """Tool `phone_<name>` of the agent and of MCP."""

    name: str
    description: str
    required: tuple[str, ...] = ()
    properties: Properties = NONE
    needs_approval: str | None = None
    group: str = ""  # of tools that a model with a small context gets on demand; see `agent.tool_selection`
    is_rare: bool = False  # behind `more_tools` for every model
    is_wordless: bool = False  # the result has no words of others


@fast_frozen(kw_only=True)
class ControlRoute:
    """A route of Device Control, with the rules for its arguments, its tools and its gates."""

    method: str
    path: str
    summary: str  # for the OpenAPI document
    sentence: tuple[str, str]  # for people: past tense and infinitive; `{x}` stands for a readable parameter
    effect: RouteEffect
    handler: str = ""  # function of the reference phone, if its name is not that of the path
    rules: tuple[ArgumentRule, ...] = ()
    tools: tuple[ControlTool, ...] = ()
    # Columns of wire bridge 5.2; the phone checks by path alone.
    is_free: bool = False  # always answered: liveness, which touches nothing
    is_probe: bool = False  # answered by the store build as well; the others are sideload-only
    needs_master: bool = True
    wakes_screen: bool = False
    checks_target: bool = False  # the blocklist applies to the package that the command would start
    always_asks: bool = False  # the user confirms each command
    # For the agent's consent, and for touches by hand.
    gesture: ScreenGesture | None = None
    content: PrivateContent | None = None
    by_hand: str = ""  # name among the commands of the dashboard and of the phone's own page
