"""API keys that belong to one pairing each: valid while its code is live, then while its session is granted chat.

The relay creates them, and the API in the same process accepts them. Only the SHA-256 of a key is stored, beside the
code and later in the session's record.
"""

from attrs import define, field

from svc_proto.basics.entropy import Entropy, new_api_key, sha256_hex
from svc_proto.basics.moment import Moment
from svc_proto.machines.grants import CHANNELS, build_rights
from svc_proto.machines.paired_session_registry import PairedSessionRegistry
from svc_proto.machines.pairing_codes import PairingCodes

__all__ = ["PairingApiKeys"]

KEY_SIZE = 16  # bytes: as short as the strength permits, so that a QR fits a small terminal


@define(kw_only=True)
class PairingApiKeys:
    """Check of pairing keys against the live codes and the paired sessions, both by the SHA-256 of the key.

    That hash is the credential id of a key's requests. `replaced` counts the replacements of the API's main key.
    """

    codes: PairingCodes = field(factory=PairingCodes)
    sessions: PairedSessionRegistry = field(factory=PairedSessionRegistry)
    replaced: int = 0

    def new_key(self, entropy: Entropy) -> tuple[str, str]:
        """Create a key, which is stored nowhere, and its hash, which goes into the `PairingMeta` of a code."""
        key = new_api_key(entropy, KEY_SIZE)
        return key, sha256_hex(key)

    def accepts(self, key: str, now: Moment) -> str | None:
        """Return the credential id of a key that is valid now; None for any other key."""
        holder = sha256_hex(key)
        return holder if self.is_valid(holder, now) else None

    def holds(self, holder: str, power: str, now: Moment) -> bool:
        """Report whether the key's session has this grant or right.

        Without a session, report whether the key's live code gives it.
        """
        session = self.sessions.find_by_api_key(holder)
        if session is not None:
            return session.may(power, now.wall) or session.holds(power, now.wall)
        meta = self.codes.terms_of_key(holder, now)
        if meta is None:
            return False
        return power in build_rights(meta.grants) or (
            power in CHANNELS and (meta.grants or {}).get(power, 0.0) is not None
        )

    def name(self, holder: str) -> str:
        """Return the name of the key's principal for records.

        It is made of prefix and device of the key's session or, without one, of the beginning of the key's hash.
        """
        session = self.sessions.find_by_api_key(holder)
        return f"key {holder[:8]}" if session is None else session.principal_name

    def is_valid(self, holder: str, now: Moment) -> bool:
        """Report whether the key's session is active and granted chat.

        Without a session, report whether the key's code is live.
        """
        session = self.sessions.find_by_api_key(holder)
        if session is not None:
            return session.holds("chat", now.wall)
        return self.codes.issues_key(holder, now)
