import logging
from pathlib import Path

import pytest

from servers.config_report import find_config_problems, log_config_problems


@pytest.mark.parametrize(
    ("data", "problems"),
    [
        (None, []),
        (b"model: llama3.2\nother: 5\n", []),
        (
            b"\n\nvoice_output:\n  language: 12\n",
            [(4, "voice_output.language is a number, not text: put it in quotes")],
        ),
        (b"# mine\nmodle: x\n", [(2, "modle is no setting that is known here: is model meant?")]),
        (b"tts:\n\tprovider: x\n", [(None, "the file is not YAML at line 2")]),
        (b"- a\n", [(None, "the top of the YAML document is not a mapping")]),
        ("a: b".encode("utf-16"), [(None, "the file is not UTF-8")]),
    ],
)
def test_problems_have_their_lines(tmp_path: Path, data: bytes | None, problems: list[tuple[int | None, str]]) -> None:
    path = tmp_path / "config.yaml"
    if data is not None:
        path.write_bytes(data)
    assert find_config_problems(str(path)) == problems


def test_a_folder_is_a_problem(tmp_path: Path) -> None:
    assert find_config_problems(str(tmp_path)) == [(None, "the file cannot be read: Is a directory")]


def test_each_file_is_reported_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "config.yaml"
    path.write_text("voice_output: {language: 12}")
    log_config_problems(logging.getLogger("test.svc"), str(path), str(path), str(tmp_path / "none"))
    (record,) = caplog.records
    assert str(record.msg).startswith(f"configuration not used path={path} line=1 problem=")
