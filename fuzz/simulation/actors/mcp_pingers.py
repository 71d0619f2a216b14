"""Remote agents that ping phones by MCP (`/mcp`) with the token of a device; they listen, and reconnect."""

from collections.abc import Mapping

from fuzz.simulation.actors.actor_context import LATE, ActorContext, StepHandler
from fuzz.simulation.actors.device_control import DeviceControlActors
from fuzz.simulation.deployment import REMOTE
from fuzz.simulation.invariants import Invariant, violated
from fuzz.simulation.mcp_client import CUTS, McpClientSession, McpEndpoint, PendingMcpRequest, SimMcpClient
from fuzz.simulation.models.reference_model import SessionModel
from fuzz.steps import Step, UseMcp
from tests.support.sim_http import RequestClient

IDLE = 1800.0  # s after which a session without use ends
ANSWERED = 45.0  # s in which a call has an answer: from a phone, or an error after 30 s
STREAMED = 6.0  # s after which an answer that has not arrived is a stream
PING: Mapping[str, object] = {"name": "phone_ping", "arguments": {}}


class McpPingers:
    """Handler of the steps in which MCP clients ping phones and listen; checks answers and streams."""

    def __init__(self, crowd: ActorContext, control: DeviceControlActors) -> None:
        self.crowd = crowd
        self.world = crowd.world
        self.control = control
        self._clients: dict[SessionModel, SimMcpClient] = {}
        self.handlers: dict[type[Step], StepHandler] = {UseMcp: self._step}

    @property
    def talked(self) -> bool:
        """Report whether there ever was an MCP session."""
        return any(client.talks for client in self._clients.values())

    @property
    def has_clients(self) -> bool:
        """Report whether there may have been an MCP session: the answer that names it may be lost."""
        return bool(self._clients)

    def client(self, session: SessionModel) -> SimMcpClient:
        """Return the MCP client with the token of a paired session; create it if there is none."""
        if session not in self._clients:
            place = McpEndpoint(self.world.agent, REMOTE, lambda: session.token)
            self._clients[session] = SimMcpClient(self.world, place)
        return self._clients[session]

    def _step(self, step: UseMcp) -> None:
        if not self.crowd.sessions:
            return
        session = self.crowd.pick_session(step.session)
        client = self.client(session)
        mine = [talk for talk in client.talks if not talk.ending]
        if not mine or step.action % 9 == 0:
            client.open(self.world.relay, lambda talk: self._act(session, talk, step))
        else:
            self._act(session, mine[step.action // 9 % len(mine)], step)

    def _act(self, session: SessionModel, talk: McpClientSession, step: UseMcp) -> None:
        match step.action % 9:
            case 0 | 1 | 2 | 3:
                self._call(session, talk, step.seconds, leaves=step.action % 2 == 1)
                if step.action % 9 == 2:  # another call is abandoned soon, which must not affect the first
                    self._give_up(talk)
            case 4 | 5:
                self.listen(session, talk)
            case 6:
                other = self.crowd.pick_session(step.action)
                if other is not session:
                    self.client(other).try_foreign_session(talk)
            case 7:
                talk.end()
            case _:
                talk.request("tools/list", {}, lambda message: None)

    def listen(self, session: SessionModel, talk: McpClientSession) -> None:
        """Listen for notifications; an earlier listener of the MCP session must be replaced.

        404 is a violation while the MCP session must exist.
        """
        before = talk.listener

        def over(caller: RequestClient) -> None:
            if caller.status == 404 and self._is_there(session, talk, caller.began):
                violated(Invariant.RECOVERY, f"a session of MCP of {session.prefix} is not there any more")

        def check_replaced(before: RequestClient) -> None:
            took = listener.head is not None and listener.head.status == 200
            both = took and not before.is_closed and self.world.is_unaffected(before)
            if both and self._is_there(session, talk, before.began):
                violated(Invariant.STREAM, "two listen to one session of MCP")

        listener = talk.listen(over)
        if before is not None:
            self.world.sim.after(2 * LATE, lambda: check_replaced(before))

    def check_invariants(self) -> None:
        """Check that a listener is disconnected soon after the end of its paired session.

        Listeners under a fault are exempt; while the relay does not run, all are.
        """
        for session, client in self._clients.items():
            over = self.crowd.latest_end(session)
            for talk in client.talks:
                listener = talk.listener
                if listener is None or listener.is_closed or over is None:
                    continue
                is_late = self.crowd.now > max(over, talk.used) + 2 * LATE
                if (
                    is_late
                    and self.world.is_relay_up
                    and self.world.is_unaffected(listener)
                    and listener.head is not None
                ):
                    since = f"{self.crowd.now - over:.0f} s after its end"
                    violated(Invariant.RESOLVED, f"{session.prefix} listens by MCP {since}")

    def is_able(self, session: SessionModel) -> bool:
        """Report whether a session certainly has, and always had, the bridge grant, which MCP needs."""
        highest = self.world.wall.highest(self.crowd.now)
        return self.crowd.must_be_alive(session) and session.surely_held("bridge", highest)

    # --- steps ---

    def _call(self, session: SessionModel, talk: McpClientSession, patience: float, *, leaves: bool) -> None:
        self.control.late.append(3.0 * patience)
        asked = talk.request("tools/call", PING, lambda message: self.world.count("calls by MCP"))
        until = ANSWERED
        if leaves:
            self.world.sim.after(STREAMED + patience, lambda: self._disconnect(talk, asked))
            until += STREAMED + patience
        self.world.sim.after(until, lambda: self._check_answered(session, talk, asked))

    def _disconnect(self, talk: McpClientSession, asked: PendingMcpRequest) -> None:
        if asked.stream:
            talk.disconnect_request(asked, 1.0)

    def _give_up(self, talk: McpClientSession) -> None:
        self.control.late.insert(0, STREAMED)
        asked = talk.request("tools/call", PING, lambda message: None)
        asked.cuts = CUTS
        caller = asked.caller
        assert caller is not None
        self.world.sim.after(0.5, lambda: caller.disconnect(reset=True))

    def _check_answered(self, session: SessionModel, talk: McpClientSession, asked: PendingMcpRequest) -> None:
        there = self._is_there(session, talk, asked.sent) and self.world.is_fault_free_since(asked.sent)
        if asked.answered is None and there:
            late = self.crowd.now - asked.sent
            violated(Invariant.IN_TIME, f"call {asked.number} by MCP has no answer after {late:.0f} s")

    def _is_there(self, session: SessionModel, talk: McpClientSession, since: float) -> bool:
        there = talk.server is self.world.relay and self.world.is_relay_up and since < talk.used + IDLE
        return there and not talk.ending and self.is_able(session)
