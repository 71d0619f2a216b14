"""Audit events of the relay, recorded with their principal and, for requests and sign-ins, the client's address."""

from svc_proto.basics.audit_event import OPERATOR
from svc_proto.engine.audit_log import AuditLog
from svc_proto.engine.core import Engine
from svc_proto.engine.message import Request
from svc_proto.engine.request_origin import TrustedProxies
from svc_proto.machines.paired_session import PairedSession

__all__ = ["RelayAudit"]


class RelayAudit:
    """Recorder of the relay's audit events."""

    def __init__(self, engine: Engine, proxies: TrustedProxies) -> None:
        self._proxies = proxies
        self._log = AuditLog(engine)

    def record(self, event: str, request: Request, /, **about: object) -> None:
        """Record an event with the client address of the request.

        The principal is that of the request's paired session; without one, the operator.
        """
        caller = request.principal
        principal = caller.principal_name if isinstance(caller, PairedSession) else OPERATOR
        self._log.record(event, principal, self._proxies.client_address(request), **about)

    def record_sign_in(self, session: PairedSession, address: str, *, pairs: bool = False) -> None:
        """Record a pairing, or a sign-in from another address than before; set the session's last address."""
        if pairs or session.last_address != address:
            self._log.record("paired" if pairs else "signed in", session.principal_name, address)
        session.last_address = address

    def record_agent(self, session: PairedSession, scope: str) -> None:
        """Record that the operator allowed an OAuth client, which has this session and scope."""
        self._log.record("agent allowed", OPERATOR, session=session.principal_name, scope=scope)
