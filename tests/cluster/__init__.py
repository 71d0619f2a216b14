"""The nodes of a service, the Redis between them, and its client."""
