"""Terminal and TUI channels: shells and agent gateways that clients use through the relay."""
