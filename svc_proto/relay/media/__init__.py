"""Media of the relay: registered files, uploads, and their storage in a folder or bucket."""
