"""Health checks of this host for the dashboard, by the registry that `svc doctor` uses."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from urllib.parse import urlsplit

from runtimes.files.installed_version import installed_version
from svc_proto.dashboard.config import DashboardConfig
from svc_proto.engine.core import Engine
from svc_proto.engine.flow import Flow
from svc_proto.service_clients.relay_client import RelayClient

__all__ = ["HEALTH_FUNCTIONS", "host_health"]


def host_health(config: DashboardConfig) -> Callable[[Engine], Flow[list[dict[str, object]]]]:
    """Return a function that starts a flow, which runs the health checks of this host for the dashboard.

    It requests the list of models from the model's server, but sends no prompt. It does not check a public address.
    """
    ports = [("relay", config.relay.port), ("dashboard", config.port)]
    if config.api_url is not None:
        ports.append(("api", urlsplit(config.api_url).port or 8642))
    relay = RelayClient("relay", config.relay_url, patience=config.patience, local=config.identifies_owner)

    def check(engine: Engine) -> Flow[list[dict[str, object]]]:
        # loaded at the first use: they need the modules of pairing
        from svc_proto.cli.health_checks import run_health_checks  # noqa: PLC0415, RUF100
        from svc_proto.cli.health_gathering import HealthRequest, gather_facts  # noqa: PLC0415, RUF100

        request = HealthRequest(
            config=config.relay, version=installed_version(), relay=relay, tries_model=False, ports=tuple(ports)
        )
        facts = yield from gather_facts(engine, request)
        return [each.members() for each in run_health_checks(facts)]

    return check


def _report(home: str, ports: Sequence[tuple[str, int]]) -> dict[str, object]:
    from servers.host_report import collect_host_report  # noqa: PLC0415, RUF100 - with the readers of all settings

    return collect_host_report(home, ports)


HEALTH_FUNCTIONS: dict[str, Callable[..., object]] = {"host.report": _report}
