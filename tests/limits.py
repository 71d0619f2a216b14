"""Limits of the core by their names, for the tables of them."""

from __future__ import annotations

from importlib import import_module

__all__ = ["value_of"]


def value_of(room: str, name: str) -> object:
    """A constant of a room: `sessions.DEFAULT_TTL` of `machines`."""
    module, _, constant = name.rpartition(".")
    return getattr(import_module(f"svc_proto.{room}.{module}"), constant)
