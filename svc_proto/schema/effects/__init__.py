"""Effects of phone commands that need the consent of the owner: rules on the screen and its words, and data."""
