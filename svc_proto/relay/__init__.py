"""The relay as one core: its state, its auth policy, its routes and its WebSocket channels."""
