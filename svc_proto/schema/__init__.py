"""Formats on the wire and in files, each defined once, and rules on commands to a phone. No module does IO."""
