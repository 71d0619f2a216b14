"""The event loops: asyncio, uvloop, Trio, Curio, our own."""
