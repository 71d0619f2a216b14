"""Registry of health checks: one row for each problem, with its code, title, severity and remedy."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from enum import Enum

from attrs import frozen

from svc_proto.basics.sanitize import sanitize_line
from svc_proto.cli import health_finders as find
from svc_proto.cli import phone_finders as phones
from svc_proto.cli.health_facts import HostFacts

__all__ = ["CHECKS", "HealthCheck", "HealthResult", "Severity", "run_health_checks", "worst_severity"]


class Severity(Enum):
    """Severity of a check's result: an error, a warning, or a note, which is no problem by itself."""

    ERROR = "error"  # something that the operator wants does not work, or is open
    WARNING = "warning"  # it will not work soon, or works badly
    NOTE = "note"  # no problem by itself


SIGNS = {Severity.ERROR: "✗", Severity.WARNING: "!", Severity.NOTE: "·"}


@frozen(kw_only=True)
class HealthCheck:
    """A row of the registry. `look` returns the problem's text, or None; `looked_at` describes what it inspects."""

    code: str
    title: str
    severity: Severity
    looked_at: str
    remedy: str
    look: Callable[[HostFacts], str | None]


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


def run_health_checks(facts: HostFacts) -> list[HealthResult]:
    """Run all checks of the registry, in its order."""
    return [HealthResult(check, check.look(facts)) for check in CHECKS]


def worst_severity(results: Iterable[HealthResult]) -> Severity | None:
    """Return the worst severity of the problems; None if there is none."""
    found = {result.check.severity for result in results if result.is_problem}
    return next((severity for severity in (Severity.ERROR, Severity.WARNING) if severity in found), None)


E, W, N = Severity.ERROR, Severity.WARNING, Severity.NOTE
PROXIES = "see docs/howto/proxies.md"


def _check(
    code: str,
    severity: Severity,
    title: str,
    looked_at: str,
    remedy: str,
    look: Callable[[HostFacts], str | None],
) -> HealthCheck:
    return HealthCheck(code=code, title=title, severity=severity, looked_at=looked_at, remedy=remedy, look=look)


CHECKS: tuple[HealthCheck, ...] = (
    _check("relay_down", E, "Relay", "run/relay.json", "start the servers: svc up", find.find_down("relay")),
    _check("api_down", E, "API", "run/api.json", "start the servers: svc up", find.find_down("api")),
    _check(
        "dashboard_down", N, "Dashboard", "run/dashboard.json", "svc up starts it as well", find.find_down("dashboard")
    ),
    _check("server_silent", E, "Answers", "GET /health", "svc logs shows why; svc down && svc up", find.find_silent),
    _check(
        "port_taken", E, "Ports", "configured ports", "stop it, or set RELAY_PORT or API_SERVER_PORT", find.find_taken
    ),
    _check("version_differs", W, "Version", "run/*.json", "svc down && svc up", find.find_other_version),
    _check("no_address", E, "Address", "network interfaces", "connect this host to a network", find.find_no_address),
    _check(
        "poor_address",
        W,
        "Address",
        "network interfaces",
        "set SVC_PUBLIC_URL, or name an address: svc pair --host ADDRESS",
        find.find_poor_address,
    ),
    _check(
        "relay_local_only",
        E,
        "Relay address",
        "RELAY_HOST",
        "RELAY_HOST=0.0.0.0, or a proxy",
        find.find_relay_here_alone,
    ),
    _check(
        "api_local_only",
        W,
        "API address",
        "API_SERVER_HOST",
        "API_SERVER_HOST=0.0.0.0, or a proxy",
        find.find_api_here_alone,
    ),
    _check(
        "route_dead",
        E,
        "Routes",
        "each route of an invite, from this host",
        "another host can try: nc -vz ADDRESS PORT; a firewall may be in the way",
        find.find_dead_route,
    ),
    _check("public_unreachable", E, "Public address", "requests to it", PROXIES, find.find_public(other=True)),
    _check(
        "public_plain",
        E,
        "Encryption",
        "public address",
        f"put a proxy with TLS in front, {PROXIES}",
        find.find_public("encryption"),
    ),
    _check(
        "public_open",
        E,
        "Local routes",
        "public address",
        f"RELAY_LOCAL_TRUST=secret, {PROXIES}",
        find.find_public("local routes"),
    ),
    _check(
        "public_websocket",
        E,
        "WebSocket",
        "a pairing over it",
        f"pass Upgrade on, {PROXIES}",
        find.find_public("WebSocket"),
    ),
    _check(
        "proxy_not_trusted",
        E,
        "Forwarded headers",
        "a pairing over the public address",
        f"RELAY_TRUST_PROXY_HEADERS=1, {PROXIES}",
        find.find_public("forwarded headers"),
    ),
    _check(
        "certificate_unusable",
        E,
        "Certificate",
        "certificate files",
        "name files that belong together",
        find.find_bad_certificate,
    ),
    _check(
        "certificate_expired", E, "Certificate", "certificate files", "renew it; SIGHUP loads it", find.find_expired
    ),
    _check(
        "certificate_expires", W, "Certificate", "certificate files", "renew it; SIGHUP loads it", find.find_expires
    ),
    _check(
        "certificate_name",
        W,
        "Certificate",
        "its names, and the routes",
        "issue one with these names",
        find.find_wrong_name,
    ),
    _check(
        "model_url_missing",
        E,
        "Model",
        "SVC_MODEL",
        "add SVC_MODEL_BASE_URL, or run svc model",
        find.find_model_without_url,
    ),
    _check(
        "model_unreachable",
        E,
        "Model",
        "GET /models",
        "start the model's server, or run svc model",
        find.find_model_silent,
    ),
    _check("model_key_refused", E, "Model", "GET /models", "set SVC_MODEL_API_KEY", find.find_model_refuses),
    _check("model_odd_answer", W, "Model", "GET /models", "does the address end in /v1?", find.find_model_odd),
    _check("model_name_missing", E, "Model", "SVC_MODEL", "choose one: svc model", find.find_model_without_name),
    _check("model_name_unknown", E, "Model", "list of models", "choose one: svc model", find.find_model_unknown),
    _check(
        "model_without_tools",
        W,
        "Model",
        "a request with a tool",
        "choose a model with tools: svc model",
        find.find_model_without_tools,
    ),
    _check(
        "model_context_small",
        W,
        "Model context",
        "the server's context size",
        "raise it (Ollama: OLLAMA_CONTEXT_LENGTH=16384), and SVC_MODEL_CONTEXT with it",
        find.find_small_context,
    ),
    _check(
        "model_context_false",
        E,
        "Model context",
        "SVC_MODEL_CONTEXT",
        "set SVC_MODEL_CONTEXT to the server's",
        find.find_false_context,
    ),
    _check(
        "model_differs",
        N,
        "Model's server",
        "what the agent has learned",
        "nothing: the agent sends what the server takes. It learns anew each day, or after a test in the dashboard",
        find.find_learned,
    ),
    _check(
        "model_missing",
        N,
        "Model",
        "settings",
        "connect one: svc model --url http://127.0.0.1:11434/v1",
        find.find_no_model,
    ),
    _check("disk_full", E, "Disk", "free bytes at the home", "free some space", find.find_full),
    _check("disk_low", W, "Disk", "free bytes at the home", "free some space", find.find_nearly_full),
    _check(
        "home_not_writable",
        E,
        "Home",
        "a file written to the home",
        "mount it writable, or set SVC_HOME",
        find.find_not_writable,
    ),
    _check(
        "home_readable",
        W,
        "Home",
        "modes of the home and .env",
        "chmod 700 the folder, 600 the file",
        find.find_readable_by_others,
    ),
    _check(
        "database_broken",
        E,
        "Database",
        "a read of the database",
        "restore a backup, or see svc db --help",
        find.find_database,
    ),
    _check(
        "clock_behind",
        E,
        "Clock",
        "times of files in the home",
        "set the clock: timedatectl set-ntp true",
        find.find_clock_back,
    ),
    _check(
        "clock_off",
        E,
        "Clock",
        "Date of another server",
        "set the clock: timedatectl set-ntp true",
        find.find_clock_off,
    ),
    _check("backup_missing", W, "Backup", "run/last-backup", "svc backup", find.find_no_backup),
    _check("backup_old", W, "Backup", "run/last-backup", "svc backup", find.find_old_backup),
    _check("key_missing", E, "API key", "API_SERVER_KEY", "make one: svc key rotate", find.find_no_key),
    _check("key_weak", W, "API key", "API_SERVER_KEY", "make one: svc key rotate", find.find_weak_key),
    _check("password_weak", E, "Dashboard", "SVC_DASHBOARD_PASSWORD", "set a longer one", find.find_weak_password),
    _check("brand_differs", W, "Names", "SVC_BRAND", "svc down && svc up", find.find_other_brand),
    _check("env_unreadable", E, "Settings", ".env", "mend the line", lambda facts: facts.env_problem or None),
    _check(
        "env_unknown",
        W,
        "Settings",
        ".env and environment",
        "correct the names",
        find.find_listed(lambda f: f.unknown_variables),
    ),
    _check(
        "config_wrong", W, "Settings", "config.yaml", "mend the lines", find.find_listed(lambda f: f.config_problems)
    ),
    _check(
        "path_missing",
        W,
        "Settings",
        "paths in the settings",
        "create them, or change it",
        find.find_listed(lambda f: f.missing_paths),
    ),
    _check("phone_missing", N, "Phones", "GET /sessions", "pair one: svc pair", phones.find_no_phone),
    _check("phone_away", W, "Phones", "GET /sessions", "open the app on the phone", phones.find_phone_away),
    _check("phone_offline", N, "Phones", "GET /sessions", "open the app on the phone", phones.find_phone_offline),
    _check(
        "phone_store_build",
        W,
        "Device Control",
        "GET /bridge/devices",
        "install the app's sideload build",
        phones.find_store_build,
    ),
    _check(
        "phone_control_off",
        N,
        "Device Control",
        "GET /bridge/devices",
        "switch it on in the app",
        phones.find_no_control,
    ),
    _check(
        "phone_accessibility_off",
        W,
        "Device Control",
        "GET /bridge/devices",
        "switch it on in Android",
        phones.find_no_accessibility,
    ),
    _check(
        "phone_battery",
        W,
        "Phones",
        "GET /bridge/devices",
        "allow the app to run unrestricted",
        phones.find_battery_optimized,
    ),
    _check("session_expires", W, "Phones", "GET /sessions", "svc extend, or pair again", phones.find_session_ends),
)
