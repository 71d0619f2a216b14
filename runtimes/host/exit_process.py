"""The end of a process, once its loop is over."""

from __future__ import annotations

import signal
import sys
import threading
from typing import NoReturn

__all__ = ["exit_process"]


def exit_process(code: int) -> NoReturn:
    """End the process. From here on Ctrl-C ends it at once: the interpreter would show where it was in its own end."""
    if threading.current_thread() is threading.main_thread() and signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    sys.exit(code)
