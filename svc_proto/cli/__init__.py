"""What the command-line clients decide: input, stored sessions, pins, and what they ask of relays; no IO."""
