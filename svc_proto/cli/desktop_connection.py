"""Connection of a desktop to a relay: its identity, and the error texts when it fails."""

from collections.abc import Mapping
from typing import cast

from attrs import frozen

from svc_proto.cli.error_text import error_text, sanitize_line, tls_hint
from svc_proto.cli.errors import CliError
from svc_proto.engine.core import Engine
from svc_proto.engine.flow import Flow
from svc_proto.engine.http_client import HttpResult
from svc_proto.facts import Failure, FailureKind
from svc_proto.service_clients import relay_connection
from svc_proto.service_clients.failure_text import failure_reason
from svc_proto.service_clients.relay_url import RelayUrl
from svc_proto.service_clients.service_client import ServiceCallError, ServiceClient, ServiceFault

__all__ = ["DesktopIdentity", "CredentialRefusedError", "RelayUnreachableError", "connect_desktop"]

PAIR_AGAIN = "pair again: svc-relay pair"
NEW_CODE = "make a new code with svc pair on its host"


class CredentialRefusedError(CliError):
    """The relay rejects the credential: a retry with it is useless."""


class RelayUnreachableError(CliError):
    """The relay does not answer, closes the connection or answers with a status from 500: a retry may succeed."""


@frozen(kw_only=True)
class DesktopIdentity:
    """Description of a desktop for a relay: name, hostname, device id and platform."""

    name: str
    hostname: str
    device_id: str
    platform: str = "unknown"


def connect_desktop(
    engine: Engine, remote: str, credentials: Mapping[str, object], identity: DesktopIdentity
) -> Flow[tuple[relay_connection.RelayConnection, relay_connection.AuthOk]]:
    """Connect to a relay and sign in, by code or token; return the connection and the relay's welcome.

    Raises `CredentialRefusedError`, `RelayUnreachableError` or another `CliError`, with a line for a person.
    """
    payload = {
        **credentials,
        "device_name": identity.name,
        "device_hostname": identity.hostname,
        "device_id": identity.device_id,
        "device_platform": identity.platform,
        "client_surface": "desktop",
        "device_form_factor": "desktop",
        "supports": {},
    }
    relay = ServiceClient("the relay", RelayUrl(remote).socket_url, str(credentials.get("session_token", "")))
    try:
        return (yield from relay_connection.connect_relay(engine, relay, payload))
    except ServiceCallError as error:
        if error.answer is not None:
            raise _declined(remote, error.answer) from None
        remedy = NEW_CODE if "pairing_code" in credentials else PAIR_AGAIN
        raise _refused_error(remote, error, cast("Failure", error.failure), remedy) from None


def _refused_error(remote: str, error: ServiceCallError, failure: Failure, remedy: str) -> CliError:
    why = sanitize_line(failure.detail)
    match error.fault:
        case ServiceFault.REJECTED:
            return CredentialRefusedError(f"the relay refuses: {why or 'no reason given'}; {remedy}")
        case ServiceFault.UNAVAILABLE:
            return CliError(f"{remote} sent no usable session: is it really a relay?")
        case ServiceFault.CONNECTION_LOST if failure.kind is FailureKind.TIMED_OUT:
            return RelayUnreachableError(
                f"{remote} does not answer: no reply to sign-in in {relay_connection.SIGN_IN_TIMEOUT:.0f} s"
            )
        case ServiceFault.CONNECTION_LOST:
            return RelayUnreachableError(f"{remote} closed the connection before it let us in: {why}")
        case _:
            distrusted = tls_hint(remote, failure)
            if distrusted is not None:
                return CliError(distrusted)
            tls = " With TLS it is wss://." if remote.startswith("ws://") else ""
            where = f"the relay at {remote} cannot be reached"
            return RelayUnreachableError(
                f"{where}: {failure_reason(failure)}; is it running, and this its address?{tls}"
            )


def _declined(remote: str, answer: HttpResult) -> CliError:
    if answer.status == 429:
        after = answer.headers.get(b"retry-after") or b""
        pause = f"{after.decode('ascii')} s" if after.isdigit() and len(after) < 7 else "5 minutes"
        lifted = "or until svc pair makes a new one on its host"
        return CliError(f"too many wrong codes from this address: the relay takes no further one for {pause}, {lifted}")
    if answer.status >= 500:
        return RelayUnreachableError(f"{remote} does not open a WebSocket: {error_text(answer)}")
    return CliError(f"{remote} does not open a WebSocket: {error_text(answer)}; is it really a relay?")
