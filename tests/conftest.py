"""Hypothesis profiles, chosen by HYPOTHESIS_PROFILE: `default` for people, `ci` for runs that must repeat exactly."""

from __future__ import annotations

import os
import signal

from hypothesis import settings

settings.register_profile("default", deadline=None, max_examples=50)
settings.register_profile("ci", parent=settings.get_profile("default"), derandomize=True, print_blob=True)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))

# Under nohup, or behind a shell's `&`, these are ignored, and every program that a test starts would inherit that.
for number, handler in (
    (signal.SIGHUP, signal.SIG_DFL),
    (signal.SIGQUIT, signal.SIG_DFL),
    (signal.SIGINT, signal.default_int_handler),
):
    if signal.getsignal(number) is signal.SIG_IGN:
        signal.signal(number, handler)
