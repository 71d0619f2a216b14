"""The programs of examples/, each in a minimal environment."""
