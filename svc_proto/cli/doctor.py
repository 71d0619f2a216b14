"""Checks between this desktop and its relays, with remedies."""

from collections.abc import Sequence

from svc_proto.cli.desktop_sessions import apply_pins, candidates_of, load_sessions
from svc_proto.cli.durations import short_expiry
from svc_proto.cli.error_text import cli_error_of
from svc_proto.cli.health_facts import Finding
from svc_proto.cli.session_store import StoredSession, is_damaged
from svc_proto.commands import Compute
from svc_proto.engine.core import Engine
from svc_proto.engine.flow import Flow, run_operation
from svc_proto.facts import Failure, FailureKind
from svc_proto.service_clients.failure_text import failure_reason
from svc_proto.service_clients.relay_client import RelayClient
from svc_proto.service_clients.relay_url import RelayUrl
from svc_proto.service_clients.service_client import ServiceCallError

__all__ = ["PROBE_TIMEOUT", "run_checks", "finding_lines", "findings_json", "check_reachable"]

SOON = 3 * 86_400.0  # s before a session's end from which on it is reported
PROBE_TIMEOUT = 4.0  # s, spec "Limits"
SIGNS = {"ok": "✓", "warning": "!", "failure": "✗"}


def run_checks(engine: Engine, only: str | None = None) -> Flow[list[Finding]]:
    """Check the session file and the relays in it, or only the relay `only`; return the findings."""
    findings: list[Finding] = []
    text = yield from run_operation(engine, Compute(engine.new_op(), "sessions.read"))
    if isinstance(text, Failure):
        findings.append(
            Finding("session file", "failure", f"cannot be read: {failure_reason(text)}", "mend its permissions")
        )
    elif isinstance(text, str) and is_damaged(text):
        remedy = "pair again: the damaged file will be kept aside"
        findings.append(Finding("session file", "failure", "is damaged", remedy))
    else:
        findings.append(Finding("session file", "ok", "can be read"))
    stored = yield from load_sessions(engine)
    wanted = [session for url, session in stored.items() if only in (None, url)]
    if not wanted:
        remedy = "pair: svc-relay pair CODE --remote ws://…"
        findings.append(Finding(only or "sessions", "warning", "no session is stored", remedy))
    for session in wanted:
        yield from apply_pins(engine, session)
        findings += _lifetime(session, engine.now.wall)
        addresses = [candidate.url for candidate in candidates_of(session)] or [session.url]
        reachable = ""
        for address in addresses:
            finding = yield from check_reachable(engine, address, alone=len(addresses) == 1)
            findings.append(finding)
            reachable = reachable or (address if finding.verdict == "ok" else "")
        if reachable:
            findings.append((yield from _known(engine, session, reachable)))
        elif len(addresses) > 1:
            findings.append(Finding(session.url, "failure", "no route answers", "is the relay running?"))
    return findings


def check_reachable(engine: Engine, address: str, *, alone: bool) -> Flow[Finding]:
    """Check whether a healthy relay answers at an address; if not, the verdict is `warning`, with `alone` `failure`."""
    relay = RelayClient("the relay", RelayUrl(address).http_url)
    began = engine.now.mono
    bad = "failure" if alone else "warning"
    try:
        found = yield from relay.health(engine, within=PROBE_TIMEOUT)
    except ServiceCallError as error:
        if error.failure is None:
            return Finding(address, bad, str(cli_error_of(error)))
        why, remedy = failure_reason(error.failure), "is the relay running, and this its address?"
        if error.failure.kind is FailureKind.TLS:
            remedy = "this host does not trust the certificate: take one of a known issuer, or pair with its pin"
        return Finding(address, bad, f"cannot be reached: {why}", remedy)
    took = (engine.now.mono - began) * 1000
    return Finding(address, "ok", f"answers in {took:.0f} ms, version {found.get('version')}")


def finding_lines(findings: Sequence[Finding]) -> list[str]:
    """Return a line for each finding, followed by its remedy if it has one."""
    lines: list[str] = []
    for finding in findings:
        lines.append(f"{SIGNS[finding.verdict]} {finding.subject}: {finding.text}")
        if finding.remedy:
            lines.append(f"    {finding.remedy}")
    return lines


def findings_json(findings: Sequence[Finding]) -> dict[str, object]:
    """Return the findings as a JSON object, for programs."""
    rows = [{"subject": f.subject, "verdict": f.verdict, "text": f.text, "remedy": f.remedy or None} for f in findings]
    return {"ok": all(finding.verdict != "failure" for finding in findings), "findings": rows}


def _lifetime(session: StoredSession, now: float) -> list[Finding]:
    left = short_expiry(session.expires_at, now)
    if left == "expired":
        return [Finding(session.url, "failure", "the session has expired", "pair again: svc-relay pair")]
    found = [Finding(session.url, "ok", f"the session expires {left}")]
    if session.expires_at is not None and session.expires_at - now < SOON:
        prefix = session.token[:8]
        remedy = f"svc-relay devices extend {prefix} --ttl 30d --remote {session.url}"
        found = [Finding(session.url, "warning", f"the session expires {left}", remedy)]
    over = [
        channel for channel, expiry in sorted((session.grants or {}).items()) if expiry is not None and expiry <= now
    ]
    if over:
        found.append(
            Finding(session.url, "warning", f"grants that are over: {', '.join(over)}", "pair again to renew them")
        )
    return found


def _known(engine: Engine, session: StoredSession, address: str) -> Flow[Finding]:
    relay = RelayClient("the relay", RelayUrl(address).http_url, session.token, PROBE_TIMEOUT)
    try:
        answer = yield from relay.request(engine, "GET", "/sessions")
    except ServiceCallError as error:
        return Finding(session.url, "failure", str(cli_error_of(error)))
    if answer.status == 200:
        return Finding(session.url, "ok", "the relay knows this session")
    if answer.status == 401:
        remedy = "pair again: svc-relay pair"
        return Finding(session.url, "failure", "the relay does not know this session any more", remedy)
    return Finding(session.url, "failure", f"the relay answers {answer.status}")
