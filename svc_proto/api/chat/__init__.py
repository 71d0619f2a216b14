"""Chat sessions and messages: records, views, store requests."""
