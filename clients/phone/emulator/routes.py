"""Dispatch of the emulator: the handler of each route of the table, by its name in the modules `routes_*`."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from clients.phone.emulator import routes_act, routes_comms, routes_read, routes_share
from clients.phone.emulator.device import EmulatedDevice
from svc_proto.basics.moment import Moment
from svc_proto.phone.arguments import CommandArguments
from svc_proto.phone.backend import CommandResponse
from svc_proto.schema.device_control_routes import DEVICE_CONTROL

__all__ = ["HANDLERS", "RouteAction", "find_action", "methods_of"]

RouteAction: TypeAlias = Callable[[EmulatedDevice, CommandArguments, Moment], CommandResponse]
HANDLERS: dict[str, RouteAction] = {
    name: getattr(module, name)
    for module in (routes_read, routes_act, routes_comms, routes_share)
    for name in module.__all__
}


def find_action(method: str, path: str) -> RouteAction | None:
    """Return the handler of a route; None for a pair that is not in the table."""
    row = DEVICE_CONTROL.get((method, path))
    return None if row is None else HANDLERS[row.handler or path.removeprefix("/")]


def methods_of(path: str) -> list[str]:
    """Return the methods of a path, for a 405."""
    return [row.method for row in DEVICE_CONTROL.values() if row.path == path]
