"""Logic of the command-line clients, without IO: input, stored sessions, pins, and requests to relays."""
