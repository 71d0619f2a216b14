"""Simulated clients that pause within a request or a response, during which their session may end."""

import json

from fuzz.simulation.actors.actor_context import SERVED, ActorContext
from fuzz.simulation.deployment import REMOTE
from fuzz.simulation.invariants import Invariant, violated
from fuzz.simulation.models.reference_model import SessionModel
from tests.support.sim_http import RawBytesClient

CALLS = ("/type", "/clipboard/inbox", "/notifications/none", "/tap", "/media/upload")  # routes with a body
GIVES_UP = 20.0  # s after the rest
LARGE, SIZE = "/tmp/shared/large.bin", 400_000  # path and size of a file of the host


class HalfRequestClients:
    """Clients over HTTP/1.1 that send a request in two parts, or read the response only after a pause."""

    def __init__(self, crowd: ActorContext) -> None:
        self.crowd = crowd
        self.world = crowd.world

    def begin(self, session: SessionModel, which: int, after: float) -> None:
        """Begin a request, and send the rest after some seconds, if the connection is still open.

        A session that had ended before the rest was sent must get no status 2xx.
        """
        world, path = self.world, CALLS[which % len(CALLS)]
        body = json.dumps({"text": f"late-{self.crowd.next_number()}", "x": 1, "y": 1}).encode()
        head = f"POST {path} HTTP/1.1\r\nhost: {REMOTE.authority}\r\nauthorization: Bearer {session.token}\r\n"
        said = f"{head}content-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n".encode()
        rest: list[float] = []

        def over() -> None:
            dead = bool(rest) and session.is_dead(world.wall, rest[0], self.crowd.now)
            world.count("half calls behind their session" if dead else "half calls")
            if dead and half.status in SERVED:
                so = f"got {half.status} from {path}, half of it said after its end"
                violated(Invariant.AFTER_END, f"{session.prefix} {so}")

        half = RawBytesClient(world.agent, REMOTE, said + body[:5], over)

        def go_on() -> None:
            if not half.is_closed:
                rest.append(self.crowd.now)
                half.write(body[5:])
                world.sim.after(GIVES_UP, half.disconnect)

        world.sim.after(after, go_on)

    def download(self, session: SessionModel, after: float) -> None:
        """Request a large file, and read the response after some seconds.

        If the session has ended by then, a file that had not arrived whole before must not become complete.
        """
        world = self.world
        world.home.disk.put(LARGE, bytes(SIZE))
        head = f"GET /media/by-path?path={LARGE} HTTP/1.1\r\nhost: {REMOTE.authority}\r\n"
        reader = RawBytesClient(world.agent, REMOTE, f"{head}authorization: Bearer {session.token}\r\n\r\n".encode())
        reader.set_slow_reading(True)
        world.add_client(reader)

        def read(since: float) -> None:
            before = len(reader.heard)  # the end of another fault may have resumed the reading
            reader.set_slow_reading(False)
            world.sim.after(GIVES_UP, lambda: over(since, before))

        def over(since: float, before: int) -> None:
            world.lines.pop(reader, None)
            dead = session.is_dead(world.wall, since, self.crowd.now)
            world.count("downloads behind their session" if dead else "slow downloads")
            if dead and len(reader.heard) >= SIZE > before:
                violated(Invariant.AFTER_END, f"{session.prefix} was given a whole file, most of it after its end")
            if not reader.is_closed:
                reader.disconnect()

        world.sim.after(after, lambda: read(self.crowd.now))
