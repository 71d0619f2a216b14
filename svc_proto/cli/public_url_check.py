"""Check of a public address as an unauthenticated client sees it, made from this host.

Its one credential is a pairing code without grants, which the relay of this host registers; the session is then
revoked.
"""

from attrs import frozen

from svc_proto.basics.entropy import new_code
from svc_proto.cli.desktop_connection import DesktopIdentity, connect_desktop
from svc_proto.cli.doctor import PROBE_TIMEOUT, check_reachable
from svc_proto.cli.errors import CliError
from svc_proto.cli.health_facts import Finding
from svc_proto.cli.operator_requests import register, revoke
from svc_proto.cli.pairing_candidates import HostCandidate
from svc_proto.engine.core import Engine
from svc_proto.engine.flow import Flow
from svc_proto.engine.http_client import HttpResult, fetch
from svc_proto.engine.request_origin import is_trusted_host_name
from svc_proto.facts import Failure
from svc_proto.machines.grants import CHANNELS
from svc_proto.machines.pairing_codes import PairingMeta
from svc_proto.service_clients.failure_text import failure_reason
from svc_proto.service_clients.relay_client import RelayClient
from svc_proto.service_clients.relay_url import RelayUrl

__all__ = ["LOCAL_ROUTES", "PublicUrlCheck", "check_public_url"]

LOCAL_ROUTES = (
    ("GET", "/bridge/activity"),
    ("GET", "/media/inspect"),
    ("GET", "/sessions"),
    ("POST", "/media/register"),
    ("POST", "/pairing/approve"),
    ("POST", "/pairing/mint"),
    ("POST", "/pairing/register"),
)
NOTHING = b"[]"  # a body that none of them accepts
DENIED_STATUSES = (401, 403)
MISSING_STATUSES = (404, 405)  # the front proxy has no such route
BLOCKED = 429
LIFETIME = 60.0  # s of the session that is revoked at once
PAGE = "docs/howto/proxies.md"


@frozen(kw_only=True)
class PublicUrlCheck:
    """Subject of the check: public route, relay of this host if it runs, dashboard path if there is one."""

    route: HostCandidate
    relay: RelayClient | None
    dashboard_path: str = ""


def check_public_url(engine: Engine, check: PublicUrlCheck) -> Flow[list[Finding]]:
    """Check the relay, the API server and, with a path, the dashboard at the public address; return the findings."""
    address = check.route.relay_url
    relay = RelayClient("the relay", RelayUrl(address).http_url)
    found = yield from check_reachable(engine, address, alone=True)
    findings = [found]
    if found.verdict == "ok" or not check.route.api.tls:  # without a connection nothing is known of its certificate
        findings.append(_encryption(check.route))
    if found.verdict == "ok":
        findings.append((yield from _local_routes(engine, relay)))
        findings += yield from _pairing(engine, check.route, check.relay)
    findings.append((yield from _api(engine, check.route.api.url)))
    if check.dashboard_path:
        findings += yield from _dashboard(engine, f"{check.route.api.url}{check.dashboard_path}/")
    return findings


def _encryption(route: HostCandidate) -> Finding:
    if route.api.tls:
        return Finding("encryption", "ok", "TLS: a certificate counts that this host trusts")
    network = is_trusted_host_name(route.api.host.encode("latin-1", "replace"))
    verdict = "warning" if network else "failure"
    text = "none: every host on the way can read tokens, chats and screens"
    return Finding("encryption", verdict, text, f"put a proxy with TLS in front: {PAGE}")


def _local_routes(engine: Engine, relay: RelayClient) -> Flow[Finding]:
    opened, silent = list[str](), list[str]()
    for method, path in LOCAL_ROUTES:
        body = NOTHING if method == "POST" else b""
        answer = yield from fetch(engine, method, relay.url + path, body=body, within=PROBE_TIMEOUT)
        status = 0 if isinstance(answer, Failure) else answer.status
        if status == 0 or status == BLOCKED or status >= 500:
            silent.append(path)
        elif status not in (*DENIED_STATUSES, *MISSING_STATUSES):
            opened.append(f"{method} {path}")
    if opened:
        text = f"open to every caller on this way: {', '.join(opened)}"
        remedy = f"set RELAY_LOCAL_TRUST=secret, and have the proxy say for whom it asks: {PAGE}"
        return Finding("local routes", "failure", text, remedy)
    if silent:
        return Finding("local routes", "warning", f"not known: no answer from {', '.join(silent)}", "try again")
    return Finding("local routes", "ok", f"shut, all {len(LOCAL_ROUTES)} that were tried")


def _pairing(engine: Engine, route: HostCandidate, relay: RelayClient | None) -> Flow[list[Finding]]:
    """Pair over the public address, to check WebSockets and the relay's view of the forwarding headers.

    Without a relay on this host, or if it does not register the code, return a warning instead.
    """
    if relay is None:
        return [Finding("WebSocket", "warning", "not tried: no relay runs on this host", "run it on the relay's host")]
    code, identity = (
        new_code(engine.entropy),
        DesktopIdentity(name="svc doctor", hostname="svc doctor", device_id="svc-doctor"),
    )
    meta = PairingMeta(ttl_seconds=LIFETIME, grants=dict.fromkeys(CHANNELS))
    try:
        yield from register(engine, relay, code, meta)
    except CliError as problem:
        return [Finding("WebSocket", "warning", f"not tried: {problem}")]
    try:
        link, welcome = yield from connect_desktop(engine, route.relay_url, {"pairing_code": code}, identity)
    except CliError as problem:
        remedy = f"a proxy has to pass Upgrade on, and lead to the relay of this host: {PAGE}"
        return [Finding("WebSocket", "failure", f"a phone cannot pair: {problem}", remedy)]
    yield from link.finish()
    try:
        yield from revoke(engine, relay, welcome.token)
    except CliError as problem:
        left = Finding("WebSocket", "warning", f"the session of this test stays for {LIFETIME:.0f} s: {problem}")
        return [left]
    findings = [Finding("WebSocket", "ok", "a phone can pair")]
    encrypted = welcome.transport_hint == "wss"
    if encrypted is route.api.tls:
        believed = (
            "what the relay says of a phone's connection is so" if encrypted else "the relay knows that there is none"
        )
        findings.append(Finding("forwarded headers", "ok", believed))
    elif route.api.tls:
        text = "not believed: the relay takes phones for not encrypted, and a block counts for all of them together"
        remedy = f"set RELAY_TRUST_PROXY_HEADERS=1, and have the proxy send X-Forwarded-Proto: {PAGE}"
        findings.append(Finding("forwarded headers", "failure", text, remedy))
    else:
        text = "wrong: the relay takes phones for encrypted, and they are not"
        findings.append(Finding("forwarded headers", "failure", text, "have the proxy send X-Forwarded-Proto as it is"))
    return findings


def _api(engine: Engine, url: str) -> Flow[Finding]:
    answer = yield from fetch(engine, "GET", f"{url}/v1/models", within=PROBE_TIMEOUT)
    if isinstance(answer, Failure):
        return Finding(url, "warning", f"no API, so phones cannot chat this way: {failure_reason(answer)}", PAGE)
    if answer.status in (200, 403):
        text = "the API has no key" + (
            ": every caller may use the agent" if answer.status == 200 else ", so it refuses every caller"
        )
        return Finding(url, "failure", text, "set API_SERVER_KEY")
    if answer.status != 401:
        return Finding(url, "warning", f"no API, so phones cannot chat this way: status {answer.status}", PAGE)
    return Finding(url, "ok", "the API asks for its key")


def _dashboard(engine: Engine, url: str) -> Flow[list[Finding]]:
    answer = yield from fetch(engine, "GET", url, within=PROBE_TIMEOUT)
    if not isinstance(answer, HttpResult) or answer.status not in (200, 401):
        return []  # the path does not lead to the dashboard
    if answer.status == 200:
        return [Finding(url, "failure", "the dashboard lets every caller in", "set SVC_DASHBOARD_PASSWORD")]
    return [Finding(url, "ok", "the dashboard asks for its password")]
