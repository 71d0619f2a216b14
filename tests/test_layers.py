"""Rules of the layout: layers, cycles, docstrings, file sizes, public names, a test file for each core module."""

from __future__ import annotations

import ast
import importlib
import os
import subprocess
import sys
import tomllib
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.support.parsed_modules import find_imports, parse_module

ROOT = Path(__file__).parent.parent
PACKAGES = ("svc_proto", "runtimes", "servers", "clients", "examples")
MAX_LINES = 600
SOURCES = sorted(path for package in PACKAGES for path in (ROOT / package).rglob("*.py"))
CONTRACTS = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]


# --- layers -------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def verdict() -> str:
    """Return the output of import-linter."""
    command = [str(Path(sys.executable).with_name("lint-imports")), "--no-logo", "--no-cache"]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("COVERAGE_")}
    environment |= {"COLUMNS": "300", "NO_COLOR": "1"}
    run = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    return run.stdout + run.stderr


@pytest.mark.parametrize("name", [contract["name"] for contract in CONTRACTS])
def test_contract_is_kept(name: str, verdict: str) -> None:
    assert f"{name} KEPT" in verdict, verdict


# --- cycles -------------------------------------------------------------------------------------------------------


OWNERS = {  # names that parts of a module import for type checkers alone, since their owner passes the objects to them
    "runtimes.sim.host": ("CoreFactory", "SimHost", "SimPort"),
    "runtimes.sim.network": ("SimNetwork",),
    "runtimes.sim.process": ("SimProcess",),
    "runtimes.sim.simulation": ("Simulation",),
    "svc_proto.engine.core": ("Engine",),
    "svc_proto.engine.admission": ("UnauthenticatedConnection",),
    "svc_proto.engine.exchange": ("Exchange",),
    "svc_proto.engine.http_channel": ("HttpChannel",),
    "svc_proto.engine.server_channel": ("ServerChannel",),
    "svc_proto.mcp.pending_request": ("PendingRequest",),
    "svc_proto.voice.session_manager": ("VoiceSessionManager",),
    "svc_proto.voice.connection": ("VoiceConnection",),  # the session names the listener
    "svc_proto.wire.websocket": ("WebSocket",),  # a connection names its state
}
SERVICES = (
    "svc_proto.api.service",
    "svc_proto.dashboard.service",
    "svc_proto.relay.service",
)  # imported by programs alone: parts receive ports
ARROWS = 144  # pairs of packages with an import between them: move a helper with one caller, or pass it as an argument
OWNED = {f"{module}.{name}" for module, names in OWNERS.items() for name in names}


def imported(tree: ast.AST, *, types: bool = False) -> Iterator[str]:
    """Yield the names that a module imports, also in functions: for `from m import n`, both `m.n` and `m`.

    With `types`, also those for type checkers, except statements that import only names which `OWNERS` permits.
    """
    for node in ast.iter_child_nodes(tree):
        match node:
            case ast.If(test=ast.Name("TYPE_CHECKING"), body=body):
                alone = [ast.Module([each], []) for each in body if types]
                yield from (
                    name for each in alone if not {*imported(each)} - {*OWNERS} <= OWNED for name in imported(each)
                )
            case ast.Import(names):
                yield from (name.name for name in names)
            case ast.ImportFrom(module=str(module), names=names):
                yield from (each for name in names for each in (f"{module}.{name.name}", module))
            case ast.stmt() | ast.excepthandler() | ast.match_case():  # nothing smaller has one
                yield from imported(node, types=types)


def circles(arrows: Mapping[str, Collection[str]]) -> list[str]:
    """Return the modules that import themselves through others."""

    def reached(start: str) -> set[str]:
        found: set[str] = set()
        left = [*arrows[start]]
        while left:
            if (name := left.pop()) not in found:
                found.add(name)
                left += arrows.get(name, ())
        return found

    return [name for name in arrows if name in reached(name)]


@pytest.mark.unmeasured
@pytest.mark.parametrize("types", [False, True], ids=["as it runs", "for type checkers, too"])
def test_there_are_no_import_cycles(*, types: bool) -> None:
    names = {module_name(path): parse_module(path) for path in SOURCES}
    packages = {name.rpartition(".")[0] for name in names}  # packages load their names on demand
    every = {name: {*imported(tree, types=types)} for name, tree in names.items()}
    arrows = {name: {each for each in found if each in names} - packages for name, found in every.items()}
    assert sum(map(len, arrows.values())) > 1000
    assert circles(arrows) == []


@pytest.mark.parametrize("service", SERVICES)
def test_only_the_composition_imports_a_service(service: str) -> None:
    package = service.rpartition(".")[0]
    inside = [path for path in SOURCES if module_name(path).startswith(f"{package}.")]
    assert [path for path in inside if service in imported(parse_module(path), types=True)] == []


@pytest.mark.unmeasured
def test_imports_between_packages_do_not_increase() -> None:
    rooms = {module_name(path): "/".join(path.relative_to(ROOT).parts[:-1][:2]) for path in SOURCES}
    rooms = {name: room if room.startswith("svc_proto") else room.partition("/")[0] for name, room in rooms.items()}
    arrows = {
        (rooms[module_name(path)], rooms[name])
        for path in SOURCES
        for module, member in find_imports(path)
        for name in (module, f"{module}.{member}")
        if name in rooms
    }
    assert len({(one, other) for one, other in arrows if one != other}) <= ARROWS


def test_an_import_cycle_is_found() -> None:
    sources = {"a": "import b", "b": "def f():\n    from c import x", "c": "from a import y", "d": "import a"}
    arrows = {name: set(imported(ast.parse(source))) for name, source in sources.items()}
    assert circles(arrows) == ["a", "b", "c"]
    for_types = ast.parse("if TYPE_CHECKING:\n    import a\n    from svc_proto.engine.core import Engine")
    assert (list(imported(for_types)), list(imported(for_types, types=True))) == ([], ["a"])


# --- each file ----------------------------------------------------------------------------------------------------


def shortcomings(source: str, tree: ast.Module) -> list[str]:
    """Return the faults of a file: a missing module docstring, and too many lines."""
    found = []
    if not (ast.get_docstring(tree) or "").strip():
        found.append("no docstring that says what the file is for")
    if (lines := len(source.splitlines())) > MAX_LINES:
        found.append(f"{lines} lines, more than {MAX_LINES}: split it")
    return found


def missing_names(module: object) -> list[str]:
    """Return names in `__all__` that the module does not have or that are listed twice."""
    names: list[str] = list(getattr(module, "__all__", []))
    return [name for name in names if not hasattr(module, name) or names.count(name) > 1]


def module_name(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def test_every_package_is_found() -> None:
    assert {path.relative_to(ROOT).parts[0] for path in SOURCES} == set(PACKAGES)


def test_files_have_a_docstring_and_stay_small() -> None:
    found = {
        path.relative_to(ROOT).as_posix(): shortcomings(path.read_text(encoding="utf-8"), parse_module(path))
        for path in SOURCES
    }
    report = [f"{name}: {shortcoming}" for name, each in found.items() for shortcoming in each]
    assert not report, "\n" + "\n".join(report)


def test_public_names_exist() -> None:
    names = [module_name(path) for path in SOURCES if path.stem != "__main__"]  # a `__main__` runs when it is imported
    found = {name: missing_names(importlib.import_module(name)) for name in names}
    assert {name: missing for name, missing in found.items() if missing} == {}


@pytest.mark.parametrize(
    ("source", "count"),
    [
        ('"""What it is for."""\n' + "x = 1\n" * (MAX_LINES - 1), 0),
        ('"""What it is for."""\n' + "x = 1\n" * MAX_LINES, 1),
        ("", 1),
        ('x = 1\n"""Too late."""\n', 1),
        ('"""  """\n', 1),
        ("x = 1\n" * (MAX_LINES + 1), 2),
    ],
)
def test_shortcomings_are_seen(source: str, count: int) -> None:
    assert len(shortcomings(source, ast.parse(source))) == count


def test_missing_names_are_seen() -> None:
    module = SimpleNamespace(__all__=["here", "gone", "twice", "twice"], here=1, twice=2)
    assert missing_names(module) == ["gone", "twice", "twice"]
    assert missing_names(SimpleNamespace(here=1)) == []


# --- mirrored tests -----------------------------------------------------------------------------------------------


def mirror(path: Path) -> Path:
    """Return the test file of a module: `tests/wire/test_sse.py` for `svc_proto/wire/sse.py`."""
    inner = path.relative_to(ROOT / "svc_proto")
    return ROOT / "tests" / inner.with_name(f"test_{inner.name}")


def test_each_module_of_the_core_has_its_test_file() -> None:
    modules = [path for path in (ROOT / "svc_proto").rglob("*.py") if path.stem != "__init__"]
    missing = sorted(mirror(path).relative_to(ROOT).as_posix() for path in modules if not mirror(path).exists())
    assert not missing, "missing test files:\n" + "\n".join(missing)
