"""Realtime conversations without sockets: turn-taking, runs, playback of answers, and the two conversations."""
