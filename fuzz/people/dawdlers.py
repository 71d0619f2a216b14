"""Agents who say half of a call, and the rest of it when their session is over; and who read an answer like that."""

from __future__ import annotations

import json
from collections.abc import Callable

from fuzz.invariants import Invariant
from fuzz.lines import Line
from fuzz.model import Session, violated
from fuzz.people.crowd import SERVED, Crowd
from fuzz.world import REMOTE
from runtimes.sim.host import Host

__all__ = ["Dawdlers"]

CALLS = ("/type", "/clipboard/inbox", "/notifications/none", "/tap", "/media/upload")  # with a body to wait for
GIVES_UP = 20.0  # s after the rest
LARGE, SIZE = "/tmp/shared/large.bin", 400_000  # a file of the host, and how many bytes it has


class _Half(Line):
    """A request whose end is to come."""

    def __init__(self, host: Host, said: bytes, done: Callable[[bytes], None]) -> None:
        self.heard = bytearray()
        self._done = done
        super().__init__(host, REMOTE)
        self.write(said)

    def on_data(self, data: bytes) -> None:
        self.heard += data
        if not data:
            self.hang_up()

    def on_over(self) -> None:
        self._done(bytes(self.heard))


class _Reader(Line):
    """A request whose answer is read when it is too late."""

    def __init__(self, host: Host, said: bytes) -> None:
        self.heard = 0
        super().__init__(host, REMOTE)
        self.write(said)
        self.read_slowly(True)

    def on_data(self, data: bytes) -> None:
        self.heard += len(data)
        if not data:
            self.hang_up()


class Dawdlers:
    """They call by HTTP/1.1, where a body can be said in halves."""

    def __init__(self, crowd: Crowd) -> None:
        self.crowd = crowd
        self.world = crowd.world

    def begin(self, session: Session, which: int, after: float) -> None:
        """Begin a call; what is left of it follows after so many seconds."""
        world, path = self.world, CALLS[which % len(CALLS)]
        body = json.dumps({"text": f"late-{self.crowd.number()}", "x": 1, "y": 1}).encode()
        head = f"POST {path} HTTP/1.1\r\nhost: {REMOTE.authority}\r\nauthorization: Bearer {session.token}\r\n"
        said = f"{head}content-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n".encode()
        rest: list[float] = []

        def over(heard: bytes) -> None:
            _, _, answer = heard.partition(b"HTTP/1.1 ")
            status = int(answer[:3] or 0)
            dead = bool(rest) and session.is_dead(world.wall, rest[0], self.crowd.now)
            world.count("half calls behind their session" if dead else "half calls")
            if dead and status in SERVED:
                violated(
                    Invariant.AFTER_END, f"{session.prefix} got {status} from {path}, half of it said after its end"
                )

        half = _Half(world.agent, said + body[:5], over)

        def go_on() -> None:
            if not half.over:
                rest.append(self.crowd.now)
                half.write(body[5:])
                world.sim.after(GIVES_UP, half.hang_up)

        world.sim.after(after, go_on)

    def download(self, session: Session, after: float) -> None:
        """Ask for a large file, and read it after so many seconds, when the session may have come to its end."""
        world = self.world
        world.home.disk.put(LARGE, bytes(SIZE))
        head = f"GET /media/by-path?path={LARGE} HTTP/1.1\r\nhost: {REMOTE.authority}\r\n"
        reader = _Reader(world.agent, f"{head}authorization: Bearer {session.token}\r\n\r\n".encode())
        world.keep(reader)

        def read(since: float) -> None:
            before = reader.heard  # somebody whose network was slow has read on when it was well again
            reader.read_slowly(False)
            world.sim.after(GIVES_UP, lambda: over(since, before))

        def over(since: float, before: int) -> None:
            world.lines.pop(reader, None)
            dead = session.is_dead(world.wall, since, self.crowd.now)
            world.count("downloads behind their session" if dead else "slow downloads")
            if dead and reader.heard >= SIZE > before:
                violated(Invariant.AFTER_END, f"{session.prefix} was given a whole file, most of it after its end")
            if not reader.over:
                reader.hang_up()

        world.sim.after(after, lambda: read(self.crowd.now))
