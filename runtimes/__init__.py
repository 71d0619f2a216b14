"""All that touches the world: sockets, files, clocks, signals, threads, the store; one small adapter per loop."""
