"""Observations of a host, and the health checks that judge them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import Enum
from typing import TYPE_CHECKING, TypeAlias

from attrs import field, frozen

from svc_proto.basics.sanitize import sanitize_line
from svc_proto.schema.json_object import JsonObject
from svc_proto.service_clients.bind_addresses import LOCAL_HOSTS, WILDCARD_ADDRESSES

if TYPE_CHECKING:  # short commands load this module without the engine
    from svc_proto.service_clients.host_addresses import HostAddresses

__all__ = [
    "ERROR",
    "NOTE",
    "WARNING",
    "CheckRegistry",
    "Finder",
    "HealthCheck",
    "HealthResult",
    "Severity",
    "CertificateFacts",
    "DeviceFacts",
    "Finding",
    "HostFacts",
    "ModelFacts",
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

    @property
    def is_local_only(self) -> bool:
        """Report whether the server listens for this host alone."""
        return self.host.lower() in LOCAL_HOSTS and self.host not in WILDCARD_ADDRESSES


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
class Finding:
    """Result of a check: `ok`, `warning` or `failure`; `remedy` is the action to take."""

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
    public: tuple[Finding, ...] = ()
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

    def server(self, role: str) -> ServerFacts | None:
        """Return the server of a role; None if it was not observed."""
        return next((each for each in self.servers if each.role == role), None)

    def public_server(self, role: str) -> ServerFacts | None:
        """Return the server of a role if it runs and listens for the network, else None."""
        server = self.server(role)
        return None if server is None or not server.runs or server.is_local_only else server


# --- checks -----------------------------------------------------------------------------------------------------------


Finder: TypeAlias = "Callable[[HostFacts], str | None]"
"""A function that returns the text of a problem for the operator, or None if there is none."""


class Severity(Enum):
    """Severity of a check's result: an error, a warning, or a note, which is no problem by itself."""

    ERROR = "error"  # something that the operator wants does not work, or is open
    WARNING = "warning"  # it will not work soon, or works badly
    NOTE = "note"  # no problem by itself


ERROR, WARNING, NOTE = Severity.ERROR, Severity.WARNING, Severity.NOTE
SIGNS = {ERROR: "✗", WARNING: "!", NOTE: "·"}


@frozen(kw_only=True)
class HealthCheck:
    """A row of the registry; `looked_at` describes what `look` inspects."""

    code: str
    title: str
    severity: Severity
    looked_at: str
    remedy: str
    look: Finder


@frozen
class HealthResult:
    """The result of a check: `text` is None if the check has found nothing."""

    check: HealthCheck
    text: str | None

    @property
    def is_problem(self) -> bool:
        """Report whether the check has found something and its severity is not a note."""
        return self.text is not None and self.check.severity is not Severity.NOTE

    def lines(self) -> list[str]:
        """Return two lines for people: the title with the text of the result, and the remedy."""
        check = self.check
        found = f"{SIGNS[check.severity]} {check.title}: {sanitize_line(self.text or '')}   [{check.code}]"
        return [found, f"    {check.remedy}"]

    def members(self) -> dict[str, object]:
        """Return the result as JSON members, for programs."""
        check = self.check
        return {
            "code": check.code,
            "title": check.title,
            "severity": check.severity.value,
            "ok": not self.is_problem,
            "found": self.text,
            "looked_at": check.looked_at,
            "remedy": None if self.text is None else check.remedy,
        }


class CheckRegistry:
    """Checks in the order of their definition."""

    def __init__(self) -> None:
        self.checks: list[HealthCheck] = []

    def add(self, severity: Severity, code: str, title: str, looked_at: str, remedy: str) -> Callable[[Finder], Finder]:
        """Return a decorator that adds a finder as a check, and returns the finder."""

        def register(look: Finder) -> Finder:
            self.checks.append(
                HealthCheck(code=code, title=title, severity=severity, looked_at=looked_at, remedy=remedy, look=look)
            )
            return look

        return register
