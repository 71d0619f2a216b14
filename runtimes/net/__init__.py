"""TCP sockets, listeners, outgoing connections, file transfer, standard input and output, users of peers, mDNS."""
