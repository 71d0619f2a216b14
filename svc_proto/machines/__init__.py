"""State machines. Each lifecycle is a table that mirrors SPEC.md row by row; nobody else assigns its state."""
