"""Runs cores: pump, logs, metrics, signals, thread pool."""
