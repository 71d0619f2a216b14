"""Scripted peers: the other servers that programs of ours talk to; and the tests of our own clients of them."""
