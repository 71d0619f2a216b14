"""TLS contexts and channels."""
