"""Keys of the API that belong to one pairing each: good from the mint of its code until its session is over.

The relay of a process makes them and the API beside it takes them; both look at the same codes and sessions, so that
nothing has to be told and nothing can be forgotten. Only the SHA-256 of a key is kept, beside the code and later in
the session's record, with the device's name.
"""

from __future__ import annotations

from attrs import define, field

from svc_proto.basics.entropy import Entropy, new_api_key, sha256_hex
from svc_proto.basics.moment import Moment
from svc_proto.machines.paired_session_registry import PairedSessionRegistry
from svc_proto.machines.pairing_codes import PairingCodes

__all__ = ["PairingApiKeys"]


@define(kw_only=True)
class PairingApiKeys:
    """What a relay has given out. The SHA-256 of a key is the holder of the requests that it lets in.

    `replaced` is how often the API has been given another main key, which ends what the relay has let in by the last.
    """

    codes: PairingCodes = field(factory=PairingCodes)
    sessions: PairedSessionRegistry = field(factory=PairedSessionRegistry)
    replaced: int = 0

    def new_key(self, entropy: Entropy) -> tuple[str, str]:
        """A new key, which exists nowhere else, and its hash, which goes into the `PairingMeta` of a code."""
        key = new_api_key(entropy)
        return key, sha256_hex(key)

    def accepts(self, key: str, now: Moment) -> str | None:
        """The holder of a key that is good now."""
        holder = sha256_hex(key)
        return holder if self.is_valid(holder, now) else None

    def is_valid(self, holder: str, now: Moment) -> bool:
        """Whether its code may still be used, or its session is active and holds chat: a key is as good as chat."""
        session = self.sessions.find_by_api_key(holder)
        if session is not None:
            return session.holds("chat", now.wall)
        return self.codes.issues_key(holder, now)
