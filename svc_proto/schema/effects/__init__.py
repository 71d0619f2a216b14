"""Effects of phone commands that need the owner's consent: rules on the screen and its labels, and their word lists."""
