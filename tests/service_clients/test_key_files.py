import pytest

from svc_proto.commands import WriteConfig
from svc_proto.engine.core import Engine
from svc_proto.engine.flow import Flow
from svc_proto.service_clients.key_files import HostFileError, NewKey, set_variables, write_new_key
from tests.cli.harness import OneShotHarness


def run_writer(dotenv: bytes, *, full: bool = False) -> tuple[str, dict[str, object]]:
    """Set two variables; return the error text, empty if there is none, and the written files."""

    def plan(engine: Engine) -> Flow[str]:
        try:
            yield from set_variables(engine, "/h", {"A": "1", "B": "2"})
        except HostFileError as error:
            return str(error)
        return ""

    there = OneShotHarness(plan, files={"/h/.env": dotenv})
    there.refuse = (WriteConfig,) if full else ()
    return there.run(), {**there.written_configs}


def test_variables_are_set_in_one_write() -> None:
    assert run_writer(b"# mine\nexport A=0\nC=3") == ("", {".env": "# mine\nexport A=1\nC=3\nB=2\n"})


@pytest.mark.parametrize(
    ("dotenv", "full", "problem"),
    [
        (b"\xff", False, "/h/.env is not UTF-8: mend it by hand"),
        (b"A='", False, "/h/.env cannot be read (line 1: neither NAME=value nor a comment"),
        (b"A=0", True, "/h/.env cannot be written (no space left on the device): nothing has changed"),
    ],
)
def test_files_that_cannot_be_changed(dotenv: bytes, full: bool, problem: str) -> None:
    assert run_writer(dotenv, full=full)[0].startswith(problem)


def test_a_new_key_is_no_part_of_a_representation() -> None:
    there = OneShotHarness(lambda engine: write_new_key(engine, "/h", "/h/config.yaml", configured_key=""))
    made: NewKey = there.run()
    assert made.paths == ("/h/.env",)
    assert made.key.startswith("sk-")
    assert made.key not in repr(made)
