"""The relay's WebSocket: the connection of one client, and the dispatch of its messages by channel."""
