"""One small file for each provider of speech: requests built, answers and events read."""
