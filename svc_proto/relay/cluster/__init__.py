"""What relay nodes share."""
