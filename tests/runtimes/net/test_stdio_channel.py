import json
import os
import subprocess
from pathlib import Path

import pytest

from tests.runtimes.scripted_core import TIMEOUT
from tests.support.forkserver import Popen, python, run

ROOT = Path(__file__).parents[3]
CALL = b'{"jsonrpc": "2.0", "id": %d, "method": "tools.list", "params": []}\n'  # refused at once


def command(runtime: str) -> list[str]:
    return python("clients.gateway", "--runtime", runtime)


def identities(output: bytes) -> list[int]:
    """Return the ids of the JSON-RPC responses in the output."""
    return [message["id"] for line in output.splitlines() if "id" in (message := json.loads(line))]


def test_lines_through_pipes(runtime: str) -> None:
    calls = b"".join(CALL % number for number in range(5000))
    done = run(command(runtime), input=calls, capture_output=True, cwd=ROOT, timeout=TIMEOUT)
    assert (done.returncode, done.stderr) == (0, b"")
    assert identities(done.stdout) == list(range(5000))


def test_a_reader_that_is_slow(runtime: str) -> None:
    with Popen(command(runtime), stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=ROOT) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(b"".join(CALL % number for number in range(2000)))
        process.stdin.flush()
        assert b"gateway.ready" in process.stdout.readline()
        answers = [json.loads(process.stdout.readline())["id"] for _ in range(2000)]
        process.stdin.close()
        assert process.wait(TIMEOUT) == 0
    assert answers == list(range(2000))


def test_files_and_the_null_device(runtime: str, tmp_path: Path) -> None:
    source, target = tmp_path / "in", tmp_path / "out"
    source.write_bytes(b"".join(CALL % number for number in range(3000)))
    with source.open("rb") as calls, target.open("wb") as answers:
        assert run(command(runtime), stdin=calls, stdout=answers, cwd=ROOT, timeout=TIMEOUT).returncode == 0
    assert identities(target.read_bytes()) == list(range(3000))
    done = run(command(runtime), stdin=subprocess.DEVNULL, capture_output=True, cwd=ROOT, timeout=TIMEOUT)
    assert (done.returncode, done.stdout.count(b"\n")) == (0, 1)


def test_a_closed_output_ends_the_program(runtime: str) -> None:
    with Popen(command(runtime), stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=ROOT) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdout.readline()
        process.stdout.close()
        process.stdin.write(CALL % 1)
        process.stdin.flush()
        assert process.wait(TIMEOUT) == 0


def test_descriptors_return_to_their_blocking_mode() -> None:
    reading, writing = os.pipe()
    with Popen(command("asyncio"), stdin=reading, stdout=subprocess.DEVNULL, cwd=ROOT) as process:
        os.write(writing, CALL % 1)
        os.close(writing)
        assert process.wait(TIMEOUT) == 0
    assert os.get_blocking(reading)
    os.close(reading)


@pytest.mark.parametrize("url", ["ftp://x", "nonsense"])
def test_an_address_that_cannot_be_used(url: str) -> None:
    done = run(command("asyncio"), env={**os.environ, "RELAY_WEBAPI_URL": url}, capture_output=True, cwd=ROOT)
    assert (done.returncode, done.stdout) == (2, b"")
    assert b"RELAY_WEBAPI_URL" in done.stderr
