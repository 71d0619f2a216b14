"""Input and output for the cores (sockets, files, signals, threads, TLS, the store), loop adapters, and a simulator."""
