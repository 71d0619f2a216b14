"""File operations of cores; private folders and files, `.env` files, backups, and text from PDF."""
