"""Count of a text's tokens in the encoding o200k_base."""

import warnings
from functools import cache
from typing import Any

__all__ = ["count_tokens"]


@cache
def _encoding() -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of the package, for its own tables
        import bpe_openai

        return bpe_openai.get_encoding("o200k_base")


def count_tokens(text: str) -> int:
    return len(_encoding().encode(text))
