"""What drives a service: the core, its channels, exchanges, sockets, flows and upstream calls."""
