"""Test that the page's libraries are the unchanged files of their packages, as listed in `versions.txt`."""

from hashlib import sha256

from servers.dashboard_program import page_files

FOLDER = "vendor/"
OWN = {"versions.txt", "licences.txt"}


def test_the_libraries_are_the_files_of_their_packages() -> None:
    files = {name.removeprefix(FOLDER): body for name, body in page_files().items() if name.startswith(FOLDER)}
    rows = [row.split() for row in files["versions.txt"].decode().splitlines() if not row.startswith("#")]
    assert {name: digest for digest, name, _, _ in rows} == {
        name: sha256(body).hexdigest() for name, body in files.items() if name not in OWN
    }
    licences = files["licences.txt"].decode()
    for package in {package for _, _, package, _ in rows}:
        name, _, version = package.rpartition("@")
        assert f"==== {name} {version}\n" in licences
