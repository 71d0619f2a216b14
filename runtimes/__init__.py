"""Input and output for the cores: sockets, files, clocks, signals, threads and the store; one adapter for each loop."""
