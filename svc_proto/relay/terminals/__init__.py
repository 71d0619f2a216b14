"""Terminal and TUI channels."""
