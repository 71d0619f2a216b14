"""Requests of the operator's commands to the relay on this host: codes, revocation, security settings, consents.

Their only credential is the local secret, where the relay requires it (wire core 0.3). The time limits of a
registration and of the health check are those of wire core 10.1.
"""

from svc_proto.basics.sanitize import is_printable_ascii
from svc_proto.cli.error_text import with_explanation
from svc_proto.cli.errors import USAGE_ERROR, CliError
from svc_proto.engine.core import Engine
from svc_proto.engine.flow import Flow
from svc_proto.engine.request_origin import is_loopback_name
from svc_proto.machines.pairing_codes import PairingMeta
from svc_proto.relay_config import RelayConfig
from svc_proto.schema.json_object import JsonObject
from svc_proto.service_clients.bind_addresses import WILDCARD_ADDRESSES, bracket_ipv6
from svc_proto.service_clients.relay_client import RelayClient
from svc_proto.service_clients.service_client import ServiceFault
from svc_proto.wire.urls import encode_segment

__all__ = [
    "KEY_IS_KNOWN",
    "LOCAL",
    "PROBE_TIMEOUT",
    "answer_consent",
    "find_consent",
    "local_relay",
    "public_route_setting",
    "register",
    "build_registration",
    "revoke",
    "revoked_changes",
    "security_setting",
    "token_prefix",
    "message_line",
    "send_message",
    "wait_for_replies",
]

REGISTER_TIMEOUT = 2.0  # s, wire core 10.1
PROBE_TIMEOUT = 1.0  # s for its health, wire core 10.1
LOCAL = "the relay"
REMEDY = "start it with: svc up"
KEY_IS_KNOWN = (
    "Its QR held the API's main key as well, with which it can go on to chat and to have the agent act. "
    "Make a new key with: svc key rotate"
)
MIN_PREFIX, MAX_PREFIX = 4, 64  # characters, spec "Limits"; a whole token has 36


def local_relay(config: RelayConfig) -> RelayClient:
    """Return a client of the relay on this host, at its running or configured address."""
    host = WILDCARD_ADDRESSES.get(config.host, config.host)
    url = config.inside or f"{'https' if config.tls else 'http'}://{bracket_ipv6(host)}:{config.port}"
    return RelayClient(LOCAL, url, remedy=REMEDY, local=is_loopback_name(url.encode()))


def build_registration(code: str, meta: PairingMeta) -> dict[str, object]:
    """Return the body of `POST /pairing/register`."""
    body: dict[str, object] = {"code": code}
    if meta.ttl_seconds is not None:
        body["ttl_seconds"] = int(meta.ttl_seconds)
    if meta.grants is not None:
        body["grants"] = {channel: False if span is None else int(span) for channel, span in meta.grants.items()}
    if meta.transport_hint is not None:
        body["transport_hint"] = meta.transport_hint
    if meta.endpoints is not None:
        body["endpoints"] = meta.endpoints
    if meta.carries_key:
        body["carries_key"] = True
    if meta.own_key:
        body["own_key"] = True
    if meta.keep_earlier:
        body["keep_earlier"] = True
    return body


def register(engine: Engine, relay: RelayClient, code: str, meta: PairingMeta) -> Flow[str | None]:
    """Register a code; return the API key of the pairing, if the relay issues one. Raises `CliError`."""
    body = build_registration(code, meta)
    asked = relay.json(engine, "POST", "/pairing/register", body, within=REGISTER_TIMEOUT)
    return (yield from with_explanation(asked, _elsewhere(relay))).text("api_key") or None


def revoke(engine: Engine, relay: RelayClient, text: str) -> Flow[JsonObject]:
    """Revoke the one session whose token has this prefix; return the relay's answer. Raises `CliError`."""
    prefix = token_prefix(text)
    sentences = {
        ServiceFault.NOT_FOUND: f"no session has a token that begins with {prefix!r}: it may be over already",
        ServiceFault.CONFLICT: "{said}: give more of the token",
        **_elsewhere(relay),
    }
    return (yield from with_explanation(relay.revoke(engine, prefix), sentences))


def revoked_changes(answer: JsonObject) -> list[str]:
    """Return a line on what the revoked device changed at the agent, if it did."""
    count = int(answer.number("agent_changes") or 0)
    prefix = answer.text("revoked")
    return [f"Changes that it made at the agent: {count}. List and undo them with: svc undo {prefix}"] if count else []


def token_prefix(text: str) -> str:
    """Return a token prefix given by a person, stripped. Raises `CliError`, code 2, for an invalid one."""
    prefix = text.strip()
    if not MIN_PREFIX <= len(prefix) <= MAX_PREFIX or not is_printable_ascii(prefix):
        raise CliError(
            f"a token prefix has {MIN_PREFIX} to {MAX_PREFIX} characters, usually the 8 shown", code=USAGE_ERROR
        )
    return prefix


def security_setting(engine: Engine, relay: RelayClient, allow: bool | None) -> Flow[JsonObject]:
    """Return the setting for API keys over plain HTTP; change it first unless `allow` is None (wire core 8.3).

    Raises `ServiceCallError`.
    """
    if allow is None:
        return (yield from relay.json(engine, "GET", "/relay/security"))
    return (yield from relay.json(engine, "PATCH", "/relay/security", {"allow_insecure_api_bearer": allow}))


def public_route_setting(engine: Engine, relay: RelayClient, *, remove: bool) -> Flow[JsonObject]:
    """Return the relay's security settings; with `remove`, first unset their public route. Raises `CliError`."""
    method, body = ("PATCH", {"public_route": False}) if remove else ("GET", b"")
    return (yield from with_explanation(relay.json(engine, method, "/relay/security", body), _elsewhere(relay)))


def find_consent(engine: Engine, relay: RelayClient, word: str) -> Flow[JsonObject]:
    """Return the OAuth consent request with this code, which the agent's page shows. Raises `CliError`."""
    return (yield from with_explanation(relay.json(engine, "GET", _question(word)), _elsewhere(relay)))


def answer_consent(
    engine: Engine,
    relay: RelayClient,
    asked: JsonObject,
    *,
    allow: bool,
    scope: str | None = None,
    ttl: int | None = None,
) -> Flow[JsonObject]:
    """Answer a consent request. Raises `CliError`.

    A scope of None is the requested one; a lifetime in s of None is the usual one.
    """
    body = {"ballot": asked.text("ballot"), "allow": allow, "scope": scope, "ttl_seconds": ttl}
    return (
        yield from with_explanation(relay.json(engine, "POST", _question(asked.text("code")), body), _elsewhere(relay))
    )


def _question(word: str) -> str:
    return f"/mcp/questions/{encode_segment(word.strip())}"


def _elsewhere(relay: RelayClient) -> dict[ServiceFault, str]:
    where = f"{relay.name} at {relay.url}"
    return {ServiceFault.FORBIDDEN: f"{where} takes this only from its own host, over loopback: {{said}}"}


# --- messages to the owner --------------------------------------------------------------------------------------------


ROUND = 25  # s of one request for replies; the relay permits 30
MARGIN = 5.0  # s that a request may take beyond that


def send_message(engine: Engine, relay: RelayClient, text: str, title: str | None) -> Flow[JsonObject]:
    """Send a message to the owner's phone through the relay; return the relay's answer. Raises `CliError`."""
    asked = relay.json(engine, "POST", "/phone/message", {"text": text, "title": title})
    where = f"{LOCAL} at {relay.url}"
    return (
        yield from with_explanation(
            asked, {ServiceFault.FORBIDDEN: f"{where} accepts this only from its own host: {{said}}"}
        )
    )


def wait_for_replies(engine: Engine, relay: RelayClient, message_id: str, within: float) -> Flow[list[JsonObject]]:
    """Return the next replies of the owner to a message, or none after about `within` seconds. Raises `CliError`.

    The relay returns each reply once only. Replies to earlier messages stay there.
    """
    of = encode_segment(message_id)
    until = engine.now.mono + within
    while (left := until - engine.now.mono) > 0:
        wait = max(1, min(ROUND, int(left)))
        asked = relay.json(engine, "GET", f"/phone/replies?timeout={wait}&message_id={of}", within=wait + MARGIN)
        replies = (yield from with_explanation(asked, {})).objects("replies")
        if replies:
            return replies
    return []


def message_line(sent: JsonObject) -> str:
    """Return the line for people about a sent message."""
    if sent.get("delivered") is True:
        return "Delivered to the phone."
    count = sent.integer("buffered") or 1
    return f"No phone listens: the message waits in the queue ({count}) until one connects."
