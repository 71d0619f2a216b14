"""Test that a relay cannot choose a dotfile as the name of a download."""

from pathlib import Path

import pytest

from clients.commands.saved_file import SavedFile
from svc_proto.commands import Notify


@pytest.mark.parametrize(
    ("name", "kept"),
    [(".bashrc", "bashrc"), ("..", "media.bin"), (".", "media.bin"), ("a.b", "a.b"), ("", "media.bin")],
)
def test_a_relay_cannot_choose_a_dotfile(name: str, kept: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    saved = SavedFile(None, force=False)
    saved.on_notify(Notify("progress", {}))
    saved.on_notify(Notify("piece", {"data": b"x", "name": name}))
    assert saved.finish() == str(tmp_path / kept)
    saved.abandon()
    assert [path.name for path in tmp_path.iterdir()] == [kept]
