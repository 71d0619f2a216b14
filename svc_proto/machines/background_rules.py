"""What a voice session is told about runs that may go on in the background (wire terminal-voice 6.1, 6.9)."""

from __future__ import annotations

from attrs import frozen

__all__ = ["FOREGROUND", "BackgroundRules"]


@frozen(kw_only=True)
class BackgroundRules:
    """Times are seconds."""

    enabled: bool = True
    promote_after: float = 6.0
    spoken_handoff: bool = True  # whether the person is told aloud that a run goes on in the background
    progress_after: float = 0.0  # from when on progress may be spoken; 0: never
    progress_repeat: float = 30.0  # between two such times; 0: it is spoken once
    longest: float = 300.0  # a run in the background, from its beginning
    slow_tools: tuple[str, ...] = ()  # parts of their names

    def is_slow(self, tool: str) -> bool:
        """Whether a tool is known to take long."""
        return any(part in tool for part in self.slow_tools)


FOREGROUND = BackgroundRules(enabled=False)
"""Runs just block."""
