"""Parts of the command lines of all programs: options, help, and output for terminals."""
