"""The names of a package that embedders use, loaded when they are first asked for (PEP 562).

`from svc_proto.wire import ServerSentEvent` loads the one module that it is in: h11 and h2 stay where they are. A
package says its names twice, to type checkers as imports and to Python as a table; `tests/test_public.py` compares.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module

__all__ = ["lazy_exports"]


def lazy_exports(
    package: str, table: Mapping[str, str]
) -> tuple[list[str], Callable[[str], object], Callable[[], list[str]]]:
    """`__all__`, `__getattr__` and `__dir__` of a package; `table` has the names by module, with blanks between."""
    homes = {name: module for module, names in table.items() for name in names.split()}

    def find(name: str) -> object:
        home = homes.get(name)
        if home is None:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(import_module(home), name)

    return [*homes], find, lambda: sorted(homes)
