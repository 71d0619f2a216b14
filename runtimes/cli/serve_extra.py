"""Check for the extra `serve`, which the programs need beside the core."""

__all__ = ["require_serve_extra"]


def require_serve_extra() -> None:
    """Exit with one line of text if click is not installed. Packages of programs call this when loaded."""
    try:
        import click as _  # noqa: F401, PLC0415, RUF100 - all programs import it next
    except ModuleNotFoundError:
        said = "the core of svc-relay is installed, but not its programs: pip install 'svc-relay[serve]'"
        raise SystemExit(said) from None
