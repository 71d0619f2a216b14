"""What an agent can do: one room for each kind of tool, and the table that runs them."""
