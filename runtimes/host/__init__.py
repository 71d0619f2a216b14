"""Host of cores: pump, logs, metrics, signals, thread pool, and blocking work for `Compute`."""
