"""The agent gateway that desktops chat through when no other is installed: `python -m clients.gateway`."""
