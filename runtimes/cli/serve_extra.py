"""What the programs need beside the core: the extra `serve`. Where it is missing one line says so, not a traceback."""

from __future__ import annotations

__all__ = ["require_serve_extra"]


def require_serve_extra() -> None:
    """Called by packages of programs as they are loaded. Raises `SystemExit` where the core alone is installed."""
    try:
        import click as _  # noqa: F401, PLC0415, RUF100 - all programs do, in a moment
    except ModuleNotFoundError:
        said = "the core of svc-relay is installed, but not its programs: pip install 'svc-relay[serve]'"
        raise SystemExit(said) from None
