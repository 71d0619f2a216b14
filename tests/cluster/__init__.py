"""Tests of the cluster: nodes, the Redis between them, and its client."""
