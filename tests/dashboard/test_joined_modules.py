"""JavaScript modules of the page that are joined into one file: order, scope, names and imports."""

import pytest

from servers.dashboard_program import page_files
from svc_proto.dashboard.joined_modules import ENTRY, join_modules, list_modules

FILES = {
    "app.js": b'import { a } from "./one.js";\nimport { t } from "./i18n.js";\na(t("x"));\n',
    "one.js": b'// One.\n\nimport { b } from "./two.js";\n\n/** Return b. */\nexport function a() { return b; }\n',
    "two.js": b'import { locale, t } from "./i18n.js";\nexport const b = t(locale);  // kept\n',
    "late.js": b'import { b } from "./two.js";\nimport { c } from "./other.js";\nimport("./one.json");\n',
    "i18n.js": b"export const t = 1;\nexport const locale = 2;\n",
    "vendor/x.js": b'import { b } from "./two.js";\n',
    "app.css": b"body {}",
}


def test_modules_are_joined_in_the_order_of_their_imports() -> None:
    assert list_modules(FILES) == ["two.js", "one.js", "app.js"]
    joined = join_modules(FILES)
    lines = ['import { locale, t } from "./i18n.js";', "export const b = t(locale);  // kept"]
    assert joined[ENTRY].decode().splitlines() == [*lines, "export function a() { return b; }", 'a(t("x"));']
    assert sorted(joined) == ["app.css", "app.js", "i18n.js", "late.js", "vendor/x.js"]
    joined = join_modules(FILES)
    late = b'import { b } from "./app.js";\nimport { c } from "./other.js";\nimport("./one.json");\n'
    assert joined["late.js"] == late
    for name in ("app.css", "i18n.js", "vendor/x.js"):
        assert joined[name] == FILES[name]
    files = {"one.js": b"export {}\n"}
    assert join_modules(files) == files
    files = {**FILES, "two.js": b"export const b = 1;\nasync function a() {}\n"}
    with pytest.raises(ValueError, match=r"one\.js and two\.js both define a"):
        join_modules(files)


def test_modules_of_the_page() -> None:
    files = page_files()
    joined = join_modules(files)
    assert {"dom.js", "net.js", "management.js", ENTRY} <= set(list_modules(files))
    for name, body in joined.items():
        if name.endswith(".js") and "/" not in name:
            for member in set(list_modules(files)) - {ENTRY}:
                assert f'"./{member}"'.encode() not in body, name
