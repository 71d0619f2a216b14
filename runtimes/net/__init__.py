"""TCP sockets, listeners, outgoing connections, standard input and output."""
