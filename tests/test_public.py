"""Public names: docs/reference/public-names.md lists them, the packages have them, and the examples use no others."""

import importlib
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tests.support.parsed_modules import find_imports

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "docs/reference/public-names.md").read_text()
TUTORIAL = (ROOT / "docs/tutorials/embed-a-core.md").read_text()
PACKAGES = [
    "svc_proto", "svc_proto.wire", "svc_proto.machines", "svc_proto.engine", "svc_proto.relay", "svc_proto.api",
    "svc_proto.phone"
]  # fmt: skip
OURS = ("svc_proto", "runtimes", "servers", "clients")
CORE = {"attrs", "h11", "h2", "wsproto"}
PROTOCOLS = CORE | {"hpack", "hyperframe"}  # dependencies of h2


def for_type_checkers(package: str) -> dict[str, str]:
    """Return the names that a package imports while types are checked, with their modules."""
    names = find_imports(ROOT / package.replace(".", "/") / "__init__.py")
    return {name: module for module, name in names if module.startswith("svc_proto.") and name != "lazy_exports"}


# --- the packages -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("package", PACKAGES)
def test_names_are_the_same_for_python_and_for_type_checkers(package: str) -> None:
    module, typed = importlib.import_module(package), for_type_checkers(package)
    assert sorted(module.__all__) == sorted(typed)
    for name, home in typed.items():
        assert getattr(module, name) is getattr(importlib.import_module(home), name)


@pytest.mark.parametrize("package", PACKAGES)
def test_names_are_those_of_the_page(package: str) -> None:
    _, _, section = PAGE.partition(f"### `{package}`\n")
    rows = re.findall(r"^\| [^|]+ \| ([^|]+) \|$", section.partition("\n### ")[0], re.MULTILINE)
    told = [name for row in rows for name in re.findall(r"`(\w+)`", row)]
    assert sorted(told) == sorted(importlib.import_module(package).__all__)


def test_the_page_lists_no_other_package() -> None:
    assert re.findall(r"^### `(.+)`$", PAGE, re.MULTILINE) == PACKAGES


def test_names_of_the_runtimes_are_there() -> None:
    (told,) = re.findall(r"^Of `runtimes`: (.*?)\. Of `clients`: ", PAGE, re.MULTILINE | re.DOTALL)
    names = re.findall(r"`([\w.]+)`", told)
    assert len(names) > 10
    for name in names:
        module, _, member = name.rpartition(".")
        assert hasattr(importlib.import_module(f"runtimes.{module}"), member), name


def test_a_public_name_imports_only_its_dependencies() -> None:
    code = (
        "import sys; from svc_proto.wire import EventStreamDecoder; from svc_proto.machines import AuthRateLimiter;"
        "print(*sorted({'h11', 'h2', 'wsproto', 'asyncio', 'ssl', 'svc_proto.engine.core'} & set(sys.modules)))"
    )
    run = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert run.stdout.strip() == ""


def test_the_product_does_not_import_from_packages() -> None:
    found = [
        f"{path.relative_to(ROOT)}: from {module} import {name}"
        for package in OURS
        for path in (ROOT / package).rglob("*.py")
        for module, name in find_imports(path)
        if module in PACKAGES and not _is_module(f"{module}.{name}")
    ]
    assert found == []


def _is_module(name: str) -> bool:
    path = ROOT / name.replace(".", "/")
    return path.is_dir() or path.with_suffix(".py").exists()


# --- what they need ---------------------------------------------------------------------------------------------------


def test_the_core_needs_four_packages() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    needed = {re.split(r"[<>=]", requirement)[0] for requirement in project["dependencies"]}
    assert needed == CORE
    outside = {
        module.partition(".")[0]
        for path in (ROOT / "svc_proto").rglob("*.py")
        for module, _ in find_imports(path)
        if module.partition(".")[0] not in sys.stdlib_module_names
    }
    assert outside - {"svc_proto"} <= PROTOCOLS


# --- the examples -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", sorted((ROOT / "examples").glob("*.py")), ids=lambda path: path.stem)
def test_examples_use_stable_names(path: Path) -> None:
    used = [(module, name) for module, name in find_imports(path) if module.partition(".")[0] in OURS and name]
    for module, name in used:
        package, _, inner = module.partition(".")
        if package != "svc_proto":
            assert f"`{inner}.{name}`" in PAGE.partition(f"Of `{package}`: ")[2]
        else:
            assert module in PACKAGES, f"{module}.{name}"
    assert path.stem == "__init__" or f"examples/{path.name})" in TUTORIAL
