"""How a turn is told: the same story as the events of a session's stream, of a run, or as completion chunks."""
