"""The versions of the package, of the protocol and of the changelog, which the release script compares."""

from scripts.release import main


def test_the_project_has_one_version() -> None:
    assert main(["--check"]) == 0
