"""A small simulated Android handset: the device behind the reference phone.

Pure: no IO, no clock, no randomness. It answers every bridge command as a phone does (wire/bridge.md 3) and has no
policy of its own; safety gates stand in front of it. Start reading at `handset.py`.
"""

from __future__ import annotations

from clients.phone.emulator.backend import EmulatedPhone
from clients.phone.emulator.routes import ROUTES

__all__ = ["ROUTES", "EmulatedPhone"]
