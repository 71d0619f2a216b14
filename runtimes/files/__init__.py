"""File operations, private folders, backups."""
