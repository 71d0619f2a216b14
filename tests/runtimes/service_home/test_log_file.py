import json
import logging
import logging.handlers
import signal
from concurrent.futures import ThreadPoolExecutor
from io import StringIO
from pathlib import Path

import pytest

from runtimes.host.logs import setup_logging
from runtimes.service_home.log_file import add_log_file, log_files


@pytest.mark.parametrize("as_json", [False, True])
def test_the_log_file_has_the_format_of_the_log(tmp_path: Path, as_json: bool) -> None:
    logger = setup_logging("INFO", as_json=as_json, name="svc.kept")
    kept = add_log_file(logger, tmp_path, "relay")
    assert kept is not None
    logger.info("hello")
    kept.close()
    (file,) = log_files(tmp_path)
    assert file.stat().st_mode & 0o777 == 0o600
    (line,) = file.read_text().splitlines()
    if as_json:
        assert list(json.loads(line)) == ["time", "level", "logger", "event"]
    else:
        assert line.endswith("Z INFO svc.kept hello")


def test_the_log_file_is_limited_and_disk_errors_are_ignored(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    logger = setup_logging("INFO", name="svc.kept")
    kept = add_log_file(logger, tmp_path, "relay")
    assert isinstance(kept, logging.handlers.RotatingFileHandler)
    kept.maxBytes = 10
    for _ in range(5):
        logger.info("hello")
    assert len(list((tmp_path / "log").iterdir())) == 3
    assert all(path.stat().st_mode & 0o777 == 0o600 for path in (tmp_path / "log").iterdir())
    kept.close()

    class Full(StringIO):
        def write(self, text: str) -> int:
            raise OSError(28, "No space left on device")

        def flush(self) -> None:
            raise OSError(28, "No space left on device")

    kept.maxBytes, kept.stream = 0, Full()  # type: ignore[assignment]  # a file, for the handler
    capsys.readouterr()
    logger.info("lost")
    assert "Logging error" not in capsys.readouterr().err
    kept.close()
    (tmp_path / "a file").write_text("")
    assert add_log_file(logger, tmp_path / "a file", "relay") is None


def test_a_rotated_file_is_reopened_on_sigusr1(tmp_path: Path) -> None:
    logger = setup_logging("INFO", name="svc.kept")
    before = signal.getsignal(signal.SIGUSR1)
    kept = add_log_file(logger, tmp_path, "relay")
    assert kept is not None
    path = tmp_path / "log" / "relay.log"
    logger.info("one")
    path.rename(aside := tmp_path / "relay.log.old")
    logger.info("two")  # logrotate signals after it has moved the file
    signal.raise_signal(signal.SIGUSR1)
    logger.info("three")
    logger.info("four")
    said = [[line.split()[-1] for line in file.read_text().splitlines()] for file in (aside, path)]
    assert said == [["one", "two"], ["three", "four"]]
    assert path.stat().st_mode & 0o777 == 0o600
    kept.close()
    kept.close()
    assert signal.getsignal(signal.SIGUSR1) == before


def test_a_thread_has_no_signals(tmp_path: Path) -> None:
    logger = setup_logging("INFO", name="svc.kept")
    with ThreadPoolExecutor() as pool:
        kept = pool.submit(add_log_file, logger, tmp_path, "relay").result()
    assert kept is not None
    kept.close()
