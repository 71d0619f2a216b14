"""Modules of the first view, served as one file, so that a slow network needs one request for nearly all of them.

The modules in `APART` stay separate. The joined file has one scope, so names at the top level must differ among its
modules.
"""

import re
from collections.abc import Mapping

__all__ = ["APART", "ENTRY", "join_modules", "list_modules"]

ENTRY = "app.js"
APART = frozenset({"i18n.js"})  # modules that are loaded beside the joined file: this one requests the messages

_IMPORT = re.compile(r'^import (\{[^}]*\}) from "\./([\w.-]+)";\n', re.MULTILINE)
_COMMENT = re.compile(r"^(?:/\*\*.*?\*/| *//[^\n]*)\n", re.MULTILINE | re.DOTALL)  # whole lines
_NAME = re.compile(r"^(?:export )?(?:async )?(?:const|let|function\*?|class) (\w+)", re.MULTILINE)


def list_modules(files: Mapping[str, bytes], entry: str = ENTRY) -> list[str]:
    """Return `entry` and the modules of its folder that it imports statically, also indirectly, after their imports.

    The modules in `APART` are left out.
    """
    found: list[str] = []
    visited = set(APART)

    def visit(name: str) -> None:
        if name not in visited and name in files:
            visited.add(name)
            for _, imported in _IMPORT.findall(files[name].decode("utf-8")):
                visit(imported)
            found.append(name)

    visit(entry)
    return found


def join_modules(files: Mapping[str, bytes]) -> dict[str, bytes]:
    """Return the files with the modules of the first view joined in `ENTRY`; other modules import from that file.

    The other joined modules are left out of the result, and most comments of whole lines out of the joined file. Raises
    `ValueError` if two joined modules define the same name.
    """
    members = list_modules(files)
    texts: list[str] = []
    names: dict[str, str] = {}
    apart: dict[str, set[str]] = {}
    for member in members:
        text = files[member].decode("utf-8")
        for imported, module in _IMPORT.findall(text):
            if module not in members:
                apart.setdefault(module, set()).update(each.strip() for each in imported.strip("{} ").split(","))
        for name in _NAME.findall(text):
            if name in names:
                raise ValueError(f"{member} and {names[name]} both define {name}")
            names[name] = member
        texts.append(_COMMENT.sub("", _IMPORT.sub("", text)).strip())
    heads = [f'import {{ {", ".join(sorted(used))} }} from "./{module}";' for module, used in apart.items()]
    joined = "\n".join([*heads, *texts]) + "\n"
    served = {name: _with_new_imports(name, body, members) for name, body in files.items() if name not in members}
    return {**served, ENTRY: joined.encode("utf-8")} if members else served


def _with_new_imports(name: str, body: bytes, members: list[str]) -> bytes:
    """Return a JavaScript module with imports from `ENTRY` in place of joined modules.

    Any other file, and one in a subfolder, is returned unchanged.
    """
    if not name.endswith(".js") or "/" in name:
        return body
    text = body.decode("utf-8")
    return _IMPORT.sub(
        lambda found: f'import {found[1]} from "./{ENTRY}";\n' if found[2] in members else found[0], text
    ).encode("utf-8")
