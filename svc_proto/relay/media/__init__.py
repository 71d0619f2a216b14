"""Media files, uploads, object store."""
