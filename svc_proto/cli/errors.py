"""Error of a command: one line for people, and the exit code."""

__all__ = ["FAILED", "USAGE_ERROR", "CliError"]

FAILED = 1  # the relay or the network refused (wire core 10.1)
USAGE_ERROR = 2  # the command line is invalid (wire core 10.1)


class CliError(Exception):
    """Failure of a command: a line of text for a person, without secrets, and the exit code."""

    def __init__(self, text: str, *, code: int = FAILED) -> None:
        super().__init__(text)
        self.code = code
