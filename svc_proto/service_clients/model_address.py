"""Addresses of the pages of an OpenAI-compatible endpoint, from its base URL."""

from functools import lru_cache
from urllib.parse import urlsplit, urlunsplit

__all__ = ["COMPLETIONS", "MODELS", "endpoint_url", "has_plain_layout", "root_url"]

COMPLETIONS = "chat/completions"
MODELS = "models"


@lru_cache(maxsize=64)
def endpoint_url(base_url: str, page: str = COMPLETIONS) -> str:
    """Return the address of a page such as `models` below a base URL. A query (Azure's `api-version`) stays behind it.

    A base URL may name the completions page itself.
    """
    parts = urlsplit(base_url)
    path = parts.path.rstrip("/")
    path = path.removesuffix(f"/{COMPLETIONS}")
    return urlunsplit((parts.scheme, parts.netloc, f"{path}/{page}", parts.query, ""))


def has_plain_layout(base_url: str) -> bool:
    """Report whether other pages can be beside a base URL: it has no query and no completions page at the end."""
    parts = urlsplit(base_url)
    return not parts.query and not parts.path.rstrip("/").endswith(f"/{COMPLETIONS}")


def root_url(base_url: str, page: str) -> str:
    """Return the address of a page outside of the versioned part, such as `/props` of llama.cpp."""
    parts = urlsplit(base_url)
    path = parts.path.rstrip("/").removesuffix("/v1")
    return urlunsplit((parts.scheme, parts.netloc, f"{path}/{page}", "", ""))
