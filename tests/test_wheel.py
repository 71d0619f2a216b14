"""Contents of the wheel, and its use in an empty environment with only the core's four packages.

The environment is filled without a network: pip installs the wheel, and its dependencies are copied from the
environment of the tests. pip checks that it needs no more.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import venv
from pathlib import Path

import pytest
from hatchling.builders.wheel import WheelBuilder

from tests.support.copied_packages import CORE, copy_package

ROOT = Path(__file__).parent.parent
PACKAGES = ("svc_proto", "runtimes", "servers", "clients")
EVERYTHING = """
import importlib, sys
import runtimes.run, runtimes.host.host, runtimes.sim.contract, runtimes.sim.simulation
from examples import checked, codecs, event_stream, in_memory, own_loop, own_service
for package in ("", ".wire", ".machines", ".engine", ".relay", ".api", ".phone"):
    module = importlib.import_module("svc_proto" + package)
    for name in module.__all__:
        getattr(module, name)
runtimes.run.find_runtime("threads")
ours = {"svc_proto", "runtimes", "clients", "examples", "__main__", "attr"}
print(*sorted({name.partition(".")[0] for name in sys.modules} - sys.stdlib_module_names - ours))
"""


def run(*command: str | Path, check: bool = True) -> subprocess.CompletedProcess[str]:
    env = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "COVERAGE_"))}
    done = subprocess.run(command, env=env, cwd="/", capture_output=True, text=True, check=False)
    assert not check or done.returncode == 0, done.stdout + done.stderr
    return done


@pytest.fixture(scope="module")
def core_alone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make an environment with the installed wheel, and `examples` beside it."""
    folder = tmp_path_factory.mktemp("wheel")
    (wheel,) = WheelBuilder(str(ROOT)).build(directory=str(folder), versions=["standard"])
    home = folder / "venv"
    venv.create(home, symlinks=True, with_pip=False)
    pip = [sys.executable, "-m", "pip", "--python", str(home / "bin/python")]
    run(*pip, "install", "--quiet", "--no-deps", "--no-index", "--no-compile", wheel)
    (site,) = home.glob("lib/python*/site-packages")
    for name in CORE:
        copy_package(name, site)
    assert run(*pip, "check").stdout == "No broken requirements found.\n"
    shutil.copytree(ROOT / "examples", site / "examples", ignore=shutil.ignore_patterns("__pycache__"))
    return home


def test_each_package_has_py_typed() -> None:
    selected = {file.distribution_path for file in WheelBuilder(str(ROOT)).recurse_included_files()}
    assert {path.partition("/")[0] for path in selected} == set(PACKAGES)
    assert {f"{package}/py.typed" for package in PACKAGES} <= selected  # PEP 561


@pytest.mark.full
def test_the_core_alone(core_alone: Path) -> None:
    assert run(core_alone / "bin/python", "-c", EVERYTHING).stdout.split() == [
        "attrs",
        "h11",
        "h2",
        "hpack",
        "hyperframe",
        "wsproto",
    ]
    svc = run(core_alone / "bin/svc", "--help", check=False)
    assert svc.returncode == 1
    assert "pip install 'svc-relay[serve]'" in svc.stderr


@pytest.mark.full  # `make check` does the same with the tree
def test_the_examples_have_types_with_the_wheel(core_alone: Path) -> None:
    (site,) = core_alone.glob("lib/python*/site-packages")
    for name in ("starlette", "trio"):
        copy_package(name, site)
    examples = core_alone.parent / "src"
    examples.mkdir()
    (site / "examples").rename(examples / "examples")
    strict = ["--strict", "--python-executable", str(core_alone / "bin/python"), "--cache-dir", str(examples / "cache")]
    found = run(sys.executable, "-m", "mypy", *strict, *sorted((examples / "examples").glob("*.py")))
    assert found.stdout.startswith("Success: no issues found in ")
