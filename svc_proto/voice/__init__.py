"""Voice: speech providers, and the sessions in which a user talks with the agent; mounted by the relay."""
