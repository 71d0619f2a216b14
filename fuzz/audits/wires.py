"""Connections that end, or do not: half-closed ones, those that nobody closes, and readers who take their time."""

from __future__ import annotations

from fuzz.audit import Audit
from fuzz.audits.paired import pair
from fuzz.world import LIMITS, MAX_MEDIA, REMOTE
from runtimes.sim.host import Host
from svc_proto.wire.events import BinaryMessage, TextMessage
from tests.support.sim_http import RawBytesClient as Thrower
from tests.support.sim_http import TcpClient as Line

__all__ = ["WIRES"]

SLOWLY = 1.6  # times as long as a peer is waited for that takes nothing
SIPS = 24  # at least, in that time


def half_closed(audit: Audit) -> None:
    """Who says no more, and listens, is answered all the same."""
    one = pair(audit)
    path = audit.pick(("/sessions", "/notifications/recent", "/ping?device=Reference", "/media/none"))
    host = audit.host()
    head = f"GET {path} HTTP/1.1\r\nhost: {REMOTE.authority}\r\nauthorization: Bearer {one.token}\r\n\r\n"
    times = audit.pick((1, 1, 3))
    thrower = Thrower(host, REMOTE, head.encode() * times)
    audit.wait(lambda: thrower.opened, 10.0, "nobody is there")
    assert thrower._end is not None
    thrower._end.close_write()
    audit.wait(lambda: thrower.over, 60.0, "who says no more is not left")
    heard = bytes(thrower.heard)
    audit.same(heard.count(b"HTTP/1.1 "), times, f"how many answers {times} requests for {path} have: {heard[:300]!r}")
    due = b"404" if path == "/media/none" else b"200"
    if path.startswith("/ping") and b" 404 " in heard:
        due = b"404"  # the reference phone is not there
    audit.same([part[:3] for part in heard.split(b"HTTP/1.1 ")[1:]], [due] * times, f"what {path} is answered")
    one.seat.hang_up()


class _Deaf(Thrower):
    """Says something, hears everything, and never closes its side."""

    def on_data(self, data: bytes) -> None:
        """Keep it; the end changes nothing."""
        self.heard += data


class _Sipper(Line):
    """Takes a little at a time, as much as has come, and then nothing for a while."""

    def __init__(self, host: Host, data: bytes, pause: float) -> None:
        self.heard = 0
        self.ended = False
        self._pause = pause
        super().__init__(host, REMOTE)
        self.write(data)
        self._sip()

    def _sip(self) -> None:
        if not self.over and not self.ended:
            self.read_slowly(False)
            self.read_slowly(True)
            self.host.world.after(self._pause, self._sip)

    def on_data(self, data: bytes) -> None:
        """One sip is enough."""
        self.heard += len(data)
        self.ended = self.ended or not data


def lingerers(audit: Audit) -> None:
    """A connection that we have ended is over, whether its peer ends it too or not."""
    one = pair(audit, leaves=True)
    audit.rest(150.0)  # until nobody's connection is kept any more
    relay = audit.world.relay
    before = relay.channel_count
    bearer = f"authorization: Bearer {one.token}\r\n"
    ways = (
        f"GET /health HTTP/1.1\r\nhost: {REMOTE.authority}\r\nconnection: close\r\n\r\n",
        "GET /health HTTP/1.0\r\n\r\n",
        "nonsense\r\n\r\n",
        f"GET /sessions HTTP/1.1\r\nhost: {REMOTE.authority}\r\n{bearer}connection: close\r\n\r\n",
        f"POST /clipboard/inbox HTTP/1.1\r\nhost: {REMOTE.authority}\r\n{bearer}content-length: 99999999\r\n\r\n",
        f"GET /health HTTP/1.1\r\nhost: {REMOTE.authority}\r\nx: {'y' * 40_000}\r\n\r\n",
        "GET /health HTTP/1.1\r\nhost: half",
    )
    host = audit.host()
    chosen = audit.rng.sample(ways, 3)
    deaf = [_Deaf(host, REMOTE, each.encode()) for each in chosen]
    audit.rest(LIMITS.head_timeout + LIMITS.linger + 3.0)
    for each, said in zip(deaf, chosen, strict=True):
        if not each.heard.startswith(b"HTTP/1.1 "):
            audit.wrong(f"{said[:40]!r} is answered {bytes(each.heard)[:40]!r}")
    audit.same(relay.channel_count, before, f"connections behind {[said[:20] for said in chosen]}")
    for each in deaf:
        each.hang_up()
    kept = audit.pick((Thrower, _Deaf))(
        host, REMOTE, f"GET /health HTTP/1.1\r\nhost: {REMOTE.authority}\r\n\r\n".encode()
    )
    audit.rest(LIMITS.idle_timeout - 5.0)
    audit.same((kept.over, relay.channel_count), (False, before + 1), "a connection that is kept")
    audit.rest(10.0)
    audit.same(relay.channel_count, before, "a connection that is kept for too long")


def sippers(audit: Audit) -> None:
    """Who reads slowly, but reads, gets all of it; who reads nothing is not waited for."""
    one = pair(audit, leaves=True)
    path = f"/tmp/audit/{audit.word()}"
    audit.world.home.disk.put(path, bytes(MAX_MEDIA))
    window = audit.world.sim.network.window
    said = f"GET /media/by-path?path={path} HTTP/1.1\r\nhost: {REMOTE.authority}\r\n"
    said += f"authorization: Bearer {one.token}\r\nconnection: close\r\n\r\n"
    sips = max(SIPS, MAX_MEDIA // window)
    pause = min(LIMITS.write_timeout * SLOWLY / min(sips, SIPS), LIMITS.write_timeout / 4)
    sipper = _Sipper(audit.host(), said.encode(), pause)
    audit.wait(lambda: sipper.over or sipper.ended, pause * sips * 8 + 100.0, "who reads slowly is not told everything")
    if sipper.heard <= MAX_MEDIA:
        audit.wrong(f"who reads slowly got {sipper.heard} bytes of {MAX_MEDIA}")
    sipper.hang_up()


def sockets(audit: Audit) -> None:
    """Sockets that say too much, nonsense, or nothing at all; and what becomes of them when the relay goes."""
    world = audit.world
    one = pair(audit, name=f"p {audit.word()}", device_id=audit.word(), surface="android", form="phone")
    seat, device = one.seat, one.shown["device_id"]
    for text in ("nonsense", "[1]", "5", '{"type": 5}', "{}"):
        seat.talker.put(TextMessage(seat.talker.stream, text))
    seat.talker.put(BinaryMessage(seat.talker.stream, b"binary"))
    room = LIMITS.max_message - 200
    seat.say("notifications", "other", {"x": "y" * room})
    seat.say("system", "ping", {"ts": 3}, "p")
    told = seat.take()
    while told["type"] == "error":  # of those that name no channel
        audit.same(told["payload"]["error"], "unknown_channel", "what is said of nonsense")
        told = seat.take()
    audit.same((told["type"], told["id"]), ("pong", "p"), "what is answered behind nonsense")
    audit.rest(audit.pick((5.0, 200.0)))  # who answers pings stays
    audit.same(seat.over, False, "whether a socket ends that says nothing of its own")
    way = audit.rng.randrange(3)
    if way == 0:
        seat.say("notifications", "other", {"x": "y" * (LIMITS.max_message + 1)})
        seat.ends(1009, "the end of who says too much")
    elif way == 1:
        connection = seat.talker.carrier.connection
        assert connection is not None
        caller = pair(audit)
        seat.say("system", "ping", {"ts": 4}, "q")  # the last that is heard of it
        audit.same(seat.take()["id"], "q", "what is answered")
        world.hang(connection, 1_000.0)
        since = audit.now
        audit.rest(audit.pick((0.0, 25.0, 40.0)))
        began = audit.now
        call = audit.begin_as(caller.token, "GET", f"/ping?device={device}")
        audit.answer(call, 60.0)
        dropped = since + LIMITS.ping_interval + LIMITS.ping_patience
        due = (504, "phone_timeout") if began + 30.0 < dropped - 5.0 else (502, "phone_disconnected")
        if abs(began + 30.0 - dropped) > 5.0:
            audit.right(call, *due, f"a call to a phone that hangs since {audit.now - since:.0f} s")
        audit.rest(max(0.0, dropped + 5.0 - audit.now))
        audit.right(
            audit.ask(caller.token, "GET", f"/ping?device={device}"), 404, "unknown_device", "a phone that hangs"
        )
        caller.seat.hang_up()
        connection.heal()
    else:
        audit.restart("relay")
        audit.same(seat.over and seat.talker.close_code, 1001, "the end of a socket whose relay goes")
    seat.hang_up()


WIRES = (half_closed, lingerers, sippers, sockets)
