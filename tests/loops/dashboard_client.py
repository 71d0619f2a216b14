"""A dashboard server in an environment, with the requests that a browser sends to it."""

from collections.abc import Mapping
from typing import Any

from svc_proto.dashboard.config import DashboardConfig
from svc_proto.dashboard.relay_proxy import PREFIXES
from svc_proto.dashboard.service import LIMITS, Dashboard
from svc_proto.relay_config import RelayConfig
from svc_proto.wire.limits import Limits
from tests.loops.environment import ApiHandle, Environment, ServedProgram
from tests.support.http_codec import Response

PORT = 9119
RELAY = PREFIXES[0]
FILES = {
    "index.html": b"<!doctype html><title>t</title>",
    "app.js": b"export {}\n",
    "app.css": b"body {}\n",
    "sw.js": b"// none\n",
}


class DashboardServer(ServedProgram):
    """A started dashboard, beside the environment's relay if there is one; `config` has settings of the dashboard."""

    def __init__(
        self,
        world: Environment,
        *,
        api: ApiHandle | None = None,
        limits: Limits = LIMITS,
        files: Mapping[str, bytes] = FILES,
        **config: Any,
    ) -> None:
        relay = getattr(world, "relay", None)
        if relay is not None:
            config.setdefault("relay_url", f"http://127.0.0.1:{relay.port}")
            config.setdefault("relay", RelayConfig(port=relay.port))
        if api is not None:
            config.setdefault("api_url", f"http://127.0.0.1:{api.server.port}")

        def make(port: int, home: str) -> Dashboard:
            return Dashboard(DashboardConfig(port=port, **config), files, limits=limits)

        super().__init__(world, world.start_service("dashboard", make, port=PORT))

    def relay(self, method: str, path: str, body: object = None) -> Response:
        """Send a request through the dashboard to the relay."""
        return self.request(method, RELAY + path, body)

    def detail(self, answer: Response) -> Any:
        """Return the member `detail` of a refusal; assert that it is the first member."""
        (name, detail) = next(iter(answer.json.items()))
        assert name == "detail"
        return detail
