"""Who lives in a simulated world: each module has the steps that concern one thing. Nobody waits for anybody."""
