"""Model of what each principal may reach. It is written from the documents and shares no code with the product."""

from math import inf
from random import Random

from attrs import Factory, define

CHANNELS = ("chat", "terminal", "bridge", "tui", "voice:config", "voice:stt", "voice:tts", "voice:realtime")
READ = "bridge:read"
RIGHTS = ("manage", "files", "notifications")
SPANS = (0, 0, 9, 30)  # s of a grant or session; 0: for ever


@define(eq=False)
class PrincipalModel:
    """A paired device, or the holder of a token for MCP. Times are monotonic seconds."""

    number: int
    audience: str
    ends: dict[str, float]  # by channel: when its grant ends
    rights: set[str]
    until: float  # end of the session
    token: str = ""
    key: str = ""  # its API key, if it has one
    is_revoked: bool = False
    given: set[str] = Factory(set)  # channels that the operator gave; the principal may withdraw and regain them
    values: set[str] = Factory(set)  # that it wrote into settings, notes and approvals

    @property
    def name(self) -> str:
        """Return the name of the principal's device."""
        return f"Device-{self.number}"

    @property
    def prefix(self) -> str:
        """Return the first characters of the principal's token, by which the operator names it."""
        return self.token[:8]

    @property
    def address(self) -> str:
        """Return the principal's own IP address: the servers count failures by address."""
        return f"203.0.113.{self.number + 1}"

    def is_active(self, now: float) -> bool:
        """Report whether the principal's session has not ended."""
        return not self.is_revoked and now < self.until

    def may(self, power: str, now: float) -> bool:
        """Report whether the principal has `power` at the time `now`: a right, or a grant that has not ended."""
        return self.is_active(now) and (power in self.rights or now < self.ends.get(power, -inf))

    def may_as_device(self, power: str, now: float) -> bool:
        """Report whether the principal's token opens a route that needs `power`.

        An empty `power` needs a session alone. A token for MCP opens no such route.
        """
        return not self.audience and (self.may(power, now) if power else self.is_active(now))

    def may_use_api(self, now: float) -> bool:
        """Report whether the principal has an API key, and a chat grant that has not ended."""
        return bool(self.key) and self.may("chat", now)

    def may_at_api(self, power: str, now: float) -> bool:
        """Report whether the principal's API key is valid, and the principal has `power`."""
        return self.may_use_api(now) and self.may(power, now)


def deadline(now: float, span: float) -> float:
    """Return when a span of seconds is over; for 0 seconds, infinity."""
    return now + span if span else inf


def draw_terms(rng: Random, number: int, now: float) -> tuple[PrincipalModel, dict[str, object]]:
    """Draw a principal, and the body with which the operator registers its pairing."""
    style = rng.choice(("owner", "only", "only", "some", "some", "mcp", "reader"))
    lifetime = rng.choice(SPANS)
    preset: dict[str, object] = {}
    for channel in CHANNELS:
        given = style == "owner" or (style == "some" and rng.random() < 0.6) or (style == "mcp" and channel == "bridge")
        preset[channel] = rng.choice(SPANS) if given else False
    if style == "only":
        preset[rng.choice(CHANNELS)] = rng.choice(SPANS)
    withheld = {channel for channel in CHANNELS if preset[channel] is False}
    rights = {
        *(() if withheld else ("manage",)),
        *(() if {"chat", "bridge", "terminal", "tui"} <= withheld else ("files",)),
        *(() if "bridge" in withheld else ("notifications",)),
    }
    if style == "some" and rng.random() < 0.5:
        named = rng.choice(RIGHTS)
        preset[named] = rng.choice((0, False))
        (rights.discard if preset[named] is False else rights.add)(named)
    until = deadline(now, lifetime)
    ends = {
        channel: min(until, deadline(now, float(str(span))))
        for channel, span in preset.items()
        if channel in CHANNELS and span is not False
    }
    if style == "reader":
        preset[READ] = 0
        ends[READ] = until
    audience = "mcp" if style in ("mcp", "reader") else ""
    terms = {"grants": preset, "ttl_seconds": lifetime, "own_key": True, **({"audience": audience} if audience else {})}
    return PrincipalModel(number, audience, ends, rights, until, given=set(ends)), terms
