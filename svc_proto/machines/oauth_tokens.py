"""Tokens of an OAuth client, by their SHA-256: rotation, and the grace of a used refresh token (decision 153)."""

from __future__ import annotations

from attrs import asdict, evolve

from svc_proto.basics.entropy import secrets_equal
from svc_proto.basics.fast_frozen import fast_frozen
from svc_proto.basics.validate import array, number, object_, optional, text

__all__ = ["REFRESH_GRACE", "OAuthTokenPair", "OAuthTokens"]

REFRESH_GRACE = 60.0  # s from the first use of a refresh token, in which each further use issues tokens as well
MAX_TOKEN_PAIRS = 16  # of one session; the oldest is dropped


@fast_frozen(kw_only=True)
class OAuthTokenPair:
    """An access token and a refresh token, by their SHA-256. Times are wall-clock seconds."""

    access: str
    access_until: float
    refresh: str  # the part that changes with each use
    used_until: float | None = None  # end of the grace of a used refresh token; None: it was not used

    @classmethod
    def read(cls, value: object, field_name: str) -> OAuthTokenPair:
        """Parse the stored form. Raise `Refused` 400 for an invalid one."""
        members = object_(value, field_name)
        return cls(
            access=text(members.get("access"), f"{field_name}.access"),
            access_until=number(members.get("access_until"), f"{field_name}.access_until"),
            refresh=text(members.get("refresh"), f"{field_name}.refresh"),
            used_until=optional(members, "used_until", number),
        )

    def after_use(self, refresh: str, now: float) -> OAuthTokenPair | None:
        """Return this pair after a use of the refresh token with the hash `refresh`; None if the pair's grace is over.

        The first use of the pair's own refresh token starts the grace, after which neither token is accepted.
        """
        if self.used_until is None:
            end = now + REFRESH_GRACE
            used = self.refresh == refresh
            return evolve(self, used_until=end, access_until=min(self.access_until, end)) if used else self
        return self if now < self.used_until else None


@fast_frozen(kw_only=True)
class OAuthTokens:
    """Tokens of an OAuth client, which replace the session's own token (decision 153).

    Programs of one user share a refresh token, and use it at the same moment: for `REFRESH_GRACE` seconds after its
    first use each use issues a pair of its own.
    """

    client: str  # SHA-256 of its `client_id`
    pairs: tuple[OAuthTokenPair, ...]  # the newest first

    @classmethod
    def read(cls, value: object, field_name: str) -> OAuthTokens:
        """Parse the stored form; an older one has a single pair. Raise `Refused` 400 for an invalid one."""
        members = object_(value, field_name)
        rows = array(members["pairs"], f"{field_name}.pairs") if "pairs" in members else [members]
        return cls(
            client=text(members.get("client"), f"{field_name}.client"),
            pairs=tuple(OAuthTokenPair.read(row, field_name) for row in rows[:MAX_TOKEN_PAIRS]),
        )

    def to_record(self) -> dict[str, object]:
        """Return the tokens in the form that is stored with the session."""
        return {"client": self.client, "pairs": [asdict(pair) for pair in self.pairs]}

    def replaced(self, refresh: str, newest: OAuthTokenPair, now: float) -> OAuthTokens:
        """Return the tokens after a use of the refresh token with this hash, which issued the `newest` pair.

        Pairs whose grace is over are left out, and the oldest ones above `MAX_TOKEN_PAIRS`.
        """
        kept = [left for pair in self.pairs if (left := pair.after_use(refresh, now)) is not None]
        return evolve(self, pairs=(newest, *kept)[:MAX_TOKEN_PAIRS])

    def access_until(self, access: str) -> float:
        """Return the expiry of the access token with this hash; 0 for any other token."""
        return next((pair.access_until for pair in self.pairs if secrets_equal(pair.access, access)), 0.0)

    def accepts_refresh(self, refresh: str, now: float) -> bool:
        """Report whether the refresh token with this hash is unused, or in its grace."""
        found = (pair for pair in self.pairs if secrets_equal(pair.refresh, refresh))
        return any(pair.used_until is None or now < pair.used_until for pair in found)
