"""The event loops: asyncio, uvloop, Trio, Curio and the package's own."""
