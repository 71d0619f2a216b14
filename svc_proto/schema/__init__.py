"""Formats on the wire and in files, and rules on commands to a phone. No module does IO."""
