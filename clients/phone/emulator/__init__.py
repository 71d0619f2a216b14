"""Emulator of an Android phone: the phone backend of the reference phone.

Pure: no IO, clock or randomness. It answers the bridge commands of wire/bridge.md 3 and has no policy; safety gates
check commands before it. Start reading at `device.py`.
"""

from clients.phone.emulator.backend import EmulatedPhone

__all__ = ["EmulatedPhone"]
