"""Scripted peers: the other servers that programs of ours talk to."""
