"""Models and helpers that checks and unit tests share."""
