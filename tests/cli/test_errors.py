from svc_proto.cli.errors import CliError


def test_a_problem_has_an_exit_code() -> None:
    assert CliError("no").code == 1
    assert CliError("no", code=2).code == 2
