"""A whole core in the hands of whoever has bad intentions: any fact that the contract allows, at any time."""
