"""Bounds of the safety gates' settings, apart from the gates, so that the command line can import them alone."""

__all__ = [
    "DEFAULT_IDLE_MINUTES",
    "DEFAULT_TIMEOUT",
    "MAX_IDLE_MINUTES",
    "MAX_TIMEOUT",
    "MIN_IDLE_MINUTES",
    "MIN_TIMEOUT",
]

MIN_IDLE_MINUTES = 5  # spec "Limits": bridge idle auto-disable
MAX_IDLE_MINUTES = 120  # spec "Limits": bridge idle auto-disable
DEFAULT_IDLE_MINUTES = 30  # wire bridge 5.7
DEFAULT_TIMEOUT = 25.0  # s, wire bridge 5.5 [R]: below the relay's 30 s, or the caller would see a 504
MIN_TIMEOUT = 10.0  # s, wire bridge 5.5
MAX_TIMEOUT = 60.0  # s, wire bridge 5.5
