"""Formats on the wire and in files, each defined once, with its reader and its writer. No module does IO."""
