"""Media of the relay: files, uploads, object store."""
