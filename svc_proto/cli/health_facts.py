"""Observations of a host that the registry of health checks judges."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from attrs import field, frozen

from svc_proto.schema.json_object import JsonObject

if TYPE_CHECKING:  # short commands load this module without the engine
    from svc_proto.service_clients.host_addresses import HostAddresses

__all__ = [
    "CertificateFacts",
    "DeviceFacts",
    "HostFacts",
    "ModelFacts",
    "PublicFinding",
    "RouteFacts",
    "ServerFacts",
    "parse_device",
]


@frozen(kw_only=True)
class ServerFacts:
    """Observations of a server of this home, whether it runs or not."""

    role: str
    port: int
    host: str = "0.0.0.0"
    runs: bool = True
    answers: bool = True
    version: str = ""
    brand: str = "svc"
    taken: bool = False  # it does not run, and another program has its port
    wanted: bool = True  # the settings start it


@frozen
class RouteFacts:
    """A route of an invite, tested from this host; `problem` is empty if the tested servers answer."""

    role: str
    url: str
    problem: str = ""
    api_url: str = ""  # empty: no API server was tried

    @property
    def remote_test(self) -> str:
        """Return `nc` commands to run on another machine, which test the ports of the route from there."""
        from svc_proto.wire.urls import parse_url  # noqa: PLC0415, RUF100 - `svc status` shows no routes

        places = dict.fromkeys((url.host, url.port) for url in map(parse_url, filter(None, (self.url, self.api_url))))
        return "; ".join(f"nc -vz {host} {port}" for host, port in places)


@frozen
class PublicFinding:
    """A finding of the check of the public address, see `public_url_check`."""

    subject: str
    verdict: str
    text: str
    remedy: str = ""


@frozen(kw_only=True)
class CertificateFacts:
    """Observations of a server's certificate."""

    role: str
    path: str
    problem: str = ""  # it cannot be read, or does not belong to its key
    days_left: float = 365.0
    names: tuple[str, ...] = ()  # empty: unknown


@frozen(kw_only=True)
class ModelFacts:
    """The model's endpoint as configured, and as it answers."""

    base_url: str = ""  # empty: the built-in agent answers
    name: str = ""
    source: str = ""  # the setting that names the endpoint
    problem: str = ""  # why it cannot be reached; empty: it answers
    status: int = 200  # of its list of models; 404 means that it has none
    listed: tuple[str, ...] = ()
    has_tools: bool | None = None  # None: unknown
    context: int | None = None  # tokens, as the server reports them
    configured_context: int | None = None
    learned: tuple[str, ...] = ()  # how it differs from OpenAI's API, as the agent has learned


@frozen(kw_only=True)
class DeviceFacts:
    """Observations of a paired device: its session and, for a phone, its status."""

    name: str
    is_online: bool = True
    is_phone: bool = True
    seen_at: float | None = None  # epoch seconds
    expires_at: float | None = None
    status: Mapping[str, object] = field(factory=dict)  # its last `bridge.status`


def parse_device(session: JsonObject, phone: JsonObject | None = None) -> DeviceFacts:
    """Return a device by its session as the relay lists it, and by its status as a phone if there is one."""
    surface = session.text("client_surface") or session.text("device_form_factor")
    return DeviceFacts(
        name=session.text("device_name") or "a device",
        is_online=session.get("online") is True,
        is_phone=surface in ("android", "phone") or phone is not None,
        seen_at=session.number("last_seen"),
        expires_at=session.number("expires_at"),
        status={} if phone is None else phone,
    )


@frozen(kw_only=True)
class HostFacts:
    """All observations of a host in one run of the health checks."""

    now: float  # epoch seconds
    version: str
    home: str
    servers: tuple[ServerFacts, ...] = ()
    addresses: HostAddresses | None = None  # None: unknown
    routes: tuple[RouteFacts, ...] = ()
    left_out: tuple[str, ...] = ()
    has_outside_route: bool | None = False  # a public address, or a mesh VPN; None: unknown
    public: tuple[PublicFinding, ...] = ()
    certificates: tuple[CertificateFacts, ...] = ()
    model: ModelFacts = ModelFacts()
    disk_free: int | None = None  # bytes; None: unknown
    home_problem: str = ""  # it cannot be written
    open_files: tuple[str, ...] = ()  # files of the home that other users can read
    database: str = ""  # name for users
    database_problem: str = ""
    newest_file_at: float | None = None  # epoch seconds
    foreign_clock: float | None = None  # epoch seconds at `now`, by another server's `Date`
    clock_source: str = ""
    key: str | None = field(default=None, repr=False)  # of the API; None: unknown, "": none
    dashboard_password: str | None = field(default=None, repr=False)  # None: unknown, "": none
    brand: str = "svc"
    devices: tuple[DeviceFacts, ...] | None = None  # None: unknown
    backup_at: float | None = None  # epoch seconds
    home_since: float | None = None  # epoch seconds
    env_problem: str = ""
    unknown_variables: tuple[str, ...] = ()
    config_problems: tuple[str, ...] = ()
    missing_paths: tuple[str, ...] = ()  # settings that name a path which does not exist, with the path
    is_container: bool = False
