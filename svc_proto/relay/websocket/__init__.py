"""The relay WebSocket: one client, dispatch by channel."""
