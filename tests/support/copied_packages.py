"""Copies of installed packages in other environments, so that nothing has to be downloaded."""

import shutil
from importlib.metadata import distribution
from pathlib import Path

from packaging.requirements import Requirement

CORE = ("attrs", "h11", "h2", "wsproto")  # dependencies of the core


def copy_package(name: str, site: Path) -> None:
    """Copy an installed package and its dependencies into the folder `site`, unless they were copied before.

    Bytecode and files outside the site folder, such as scripts, are not copied.
    """
    found = distribution(name)
    mark = site / f"{name}.borrowed"
    if mark.exists():
        return
    mark.touch()
    for file in found.files or ():
        if not file.as_posix().startswith("..") and "__pycache__" not in file.parts:
            (site / file).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(str(file.locate()), site / file)
    for requirement in map(Requirement, found.requires or ()):
        if requirement.marker is None or requirement.marker.evaluate({"extra": ""}):
            copy_package(requirement.name, site)
