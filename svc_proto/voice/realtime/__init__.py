"""The realtime conversation, without sockets: floor, run and mouth, and what puts them together."""
