"""The other servers of this system, as whoever calls them has them: where this host's API and relay are, what is shown
to them, a client for each, a socket that is signed in.
"""
