import tempfile

import pytest

from runtimes.files.temporary_folder import temporary_folder


def test_a_disk_without_a_place_for_files(monkeypatch: pytest.MonkeyPatch) -> None:
    assert temporary_folder() == tempfile.gettempdir()
    monkeypatch.setattr(tempfile, "tempdir", None)
    monkeypatch.setattr(tempfile, "_candidate_tempdir_list", list)
    monkeypatch.setenv("TMPDIR", "/named")
    assert temporary_folder() == "/named"
