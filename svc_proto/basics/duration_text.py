"""Durations in short form."""

__all__ = ["short_duration"]


def short_duration(seconds: float) -> str:
    """Return `Ns`, `Nm`, `Nh` or `Nd`, rounded down (wire core 10.7)."""
    whole = max(int(seconds), 0)
    for size, unit in ((86_400, "d"), (3_600, "h"), (60, "m")):
        if whole >= size:
            return f"{whole // size}{unit}"
    return f"{whole}s"
