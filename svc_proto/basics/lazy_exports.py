"""Lazy exports of a package: a public name is loaded at its first use (PEP 562).

`from svc_proto.wire import ServerSentEvent` loads the module that defines it, with its imports; h11 and h2 are not
loaded. A package lists its names twice, for type checkers as imports and for Python as a table; `tests/test_public.py`
compares.
"""

from collections.abc import Callable, Mapping
from importlib import import_module

__all__ = ["lazy_exports"]


def lazy_exports(
    package: str, table: Mapping[str, str]
) -> tuple[list[str], Callable[[str], object], Callable[[], list[str]]]:
    """Return `__all__`, `__getattr__` and `__dir__` of a package; `table` maps each module to names in one text."""
    homes = {name: module for module, names in table.items() for name in names.split()}

    def find(name: str) -> object:
        home = homes.get(name)
        if home is None:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(import_module(home), name)

    return [*homes], find, lambda: sorted(homes)
