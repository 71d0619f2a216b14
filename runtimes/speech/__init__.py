"""Local speech: espeak-ng and transcription."""
