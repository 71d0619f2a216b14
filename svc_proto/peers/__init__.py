"""The other servers of this system, as whoever calls them has them: the API, the relay, a socket that is signed in."""
