"""Commands of the owner to a paired phone, sent by the relay's Device Control with a session of the dashboard."""

from svc_proto.basics.errors import Refused, ToolError
from svc_proto.dashboard.access import DashboardAccess
from svc_proto.dashboard.ports import DashboardPort
from svc_proto.dashboard.upstream import PRIVATE
from svc_proto.dashboard.validation import parse_body, unprocessable
from svc_proto.engine.flow import Flow
from svc_proto.engine.message import Request, Response, json_response
from svc_proto.engine.router import Route
from svc_proto.schema.device_control_routes import DEVICE_CONTROL
from svc_proto.service_clients.phone_control import RelayPhoneControl

__all__ = ["COMMANDS", "SESSION_NAME", "PhoneCommands"]

SESSION_NAME = "Dashboard on this host"
FILE = "dashboard-relay.json"  # token of the session, in the state folder
MAX_DEVICE = 200  # characters
COMMANDS = {row.by_hand: (row.method, row.path) for row in DEVICE_CONTROL.values() if row.by_hand}


class PhoneCommands:
    """Route of the owner's commands to phones.

    The session at the relay is that of the token in `FILE`. If there is none, or it has ended, a command creates one.
    """

    def __init__(self, dashboard: DashboardPort) -> None:
        self._dashboard = dashboard
        self._control: RelayPhoneControl | None = None

    def routes(self, prefix: str) -> list[Route]:
        """Return the route of the commands, whose path parameter `device` names the phone."""
        pattern = f"{prefix}/phones/{{device}}/{{command}}"
        return [Route(method="POST", pattern=pattern, access=DashboardAccess.OWNER, handler=self.send)]

    def send(self, request: Request) -> Flow[Response]:
        """Send a command with the arguments of the body, and return the answer.

        Raises `Refused`: 404 for an unknown command, 422 for an invalid request, the status of a refusal, else 502.
        """
        found = COMMANDS.get(request.params["command"])
        if found is None:
            raise Refused(404, "not_found", "the dashboard has no such command for a phone")
        device = request.params["device"]
        if len(device) > MAX_DEVICE:
            raise unprocessable("string_too_long", f"at most {MAX_DEVICE} characters", "path", "device")
        arguments = {**parse_body(request), "device": device}
        try:
            answer = yield from self._phones().call(*found, arguments)
        except ToolError as error:
            raise Refused(502, "unreachable", str(error)) from None
        if answer.status >= 400:
            status = answer.status if answer.status < 500 else 502
            raise Refused(status, "refused", "the phone refuses", extra={"detail": dict(answer.body)})
        return json_response(answer.status, dict(answer.body), (PRIVATE,))

    def _phones(self) -> RelayPhoneControl:
        if self._control is None:
            config = self._dashboard.config
            self._control = RelayPhoneControl(
                self._dashboard.engine,
                config.relay_url,
                "",
                who=SESSION_NAME,
                file=FILE,
                local=config.identifies_owner,
            )
        return self._control
