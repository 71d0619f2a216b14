"""Client preferences that concern media and addresses, with the ranges of SPEC.md "Client-side preferences"."""

from attrs import field, frozen

__all__ = ["MIB", "Preferences"]

MIB = 1024 * 1024


def _inbound(value: int) -> int:
    return min(max(value, 5), 100)


def _threshold(value: int) -> int:
    return min(max(value, 0), 50)


def _cache(value: int) -> int:
    return min(max(value, 50), 500)


@frozen(kw_only=True)
class Preferences:
    """Preferences of the user; sizes in MB (of 1,048,576 bytes), clamped to their range as on a settings page."""

    max_inbound_mb: int = field(default=25, converter=_inbound)  # 5 to 100
    auto_fetch_threshold_mb: int = field(default=2, converter=_threshold)  # 0 to 50; stored but not enforced
    auto_fetch_on_cellular: bool = False
    cache_cap_mb: int = field(default=200, converter=_cache)  # 50 to 500
    allow_plain: bool = False  # gates saving ws:// and http:// addresses only

    @property
    def max_inbound(self) -> int:
        """The largest attachment to fetch, in bytes."""
        return self.max_inbound_mb * MIB

    @property
    def cache_cap(self) -> int:
        """The largest total size of cached media, in bytes."""
        return self.cache_cap_mb * MIB

    def may_save(self, url: str) -> bool:
        """Report whether an address may be stored: wss and https always, ws and http with consent, others never."""
        scheme = url.partition("://")[0].lower()
        return scheme in ("wss", "https") or (self.allow_plain and scheme in ("ws", "http"))
