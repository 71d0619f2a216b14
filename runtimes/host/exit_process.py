"""Exit of a process after its loop has ended."""

import signal
import sys
import threading
from typing import NoReturn

__all__ = ["exit_process"]


def exit_process(code: int) -> NoReturn:
    """Exit with `code` by `SystemExit`.

    On the main thread, and unless SIGINT is ignored, a Ctrl-C during the interpreter's shutdown then ends the process
    at once, without a traceback.
    """
    if threading.current_thread() is threading.main_thread() and signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    sys.exit(code)
