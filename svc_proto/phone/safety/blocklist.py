"""Blocklist of apps that the agent must not see or touch (spec "Bridge safety gates" 5a, wire bridge 5.3).

Package names are compared as a whole and with their case. The user may edit the list.
"""

from collections.abc import Iterable

__all__ = ["DEFAULT_BLOCKLIST", "MAX_BLOCKED", "Blocklist"]

MAX_BLOCKED = 1_000  # entries; more is refused

_BANKING = (
    "com.chase.sig.android",
    "com.wf.wellsfargomobile",
    "com.bankofamerica.digitalwallet",
    "com.usaa.mobile.android.usaa",
    "com.konylabs.capitalone",
    "com.americanexpress.android.acctsvcs.us",
    "com.discoverfinancial.mobile",
    "com.infonow.bofa",
    "uk.co.hsbc.hsbcukmobilebanking",
    "com.barclays.android.barclaysmobilebanking",
    "com.monzo.android",
    "co.uk.getmondo",
    "co.revolut.app",
    "com.starlingbank.android",
)
_PAYMENT = (
    "com.venmo",
    "com.squareup.cash",
    "com.paypal.android.p2pmobile",
    "com.coinbase.android",
    "co.mona.android",
)
_PASSWORD_MANAGERS = (
    "com.lastpass.lpandroid",
    "com.agilebits.onepassword",
    "com.x8bit.bitwarden",
    "com.dashlane.frozenaccount",
    "com.keepersecurity.passwordmanager",
    "com.bitwarden.authenticator",
)
_SECOND_FACTOR = (
    "com.google.android.apps.authenticator2",
    "com.authy.authy",
    "com.duosecurity.duomobile",
)
_EMAIL_AND_WORK = (  # the spec's "email and work apps", which phones in use today do not list
    "com.google.android.gm",
    "com.microsoft.office.outlook",
    "com.microsoft.teams",
    "com.Slack",
)
DEFAULT_BLOCKLIST = _BANKING + _PAYMENT + _PASSWORD_MANAGERS + _SECOND_FACTOR + _EMAIL_AND_WORK


class Blocklist:
    """Blocked packages, in the order in which they were added."""

    def __init__(self, packages: Iterable[str] = DEFAULT_BLOCKLIST) -> None:
        self._packages: dict[str, None] = {}
        for package in packages:
            self.add(package)

    def __contains__(self, package: object) -> bool:
        return package in self._packages

    def __len__(self) -> int:
        return len(self._packages)

    @property
    def packages(self) -> tuple[str, ...]:
        """The blocked packages."""
        return tuple(self._packages)

    def add(self, package: str) -> bool:
        """Block a package; return False for a blank name, or for a new one when the list is full."""
        name = package.strip()
        if not name or (len(self._packages) >= MAX_BLOCKED and name not in self._packages):
            return False
        self._packages[name] = None
        return True

    def remove(self, package: str) -> bool:
        """Unblock a package; return whether it was blocked."""
        if package not in self._packages:
            return False
        del self._packages[package]
        return True

    def reset(self) -> None:
        """Restore the default list of blocked packages."""
        self._packages = dict.fromkeys(DEFAULT_BLOCKLIST)
