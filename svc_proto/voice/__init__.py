"""Voice: what listens, what speaks, and the sessions in which a person talks with the agent. The relay mounts it."""
