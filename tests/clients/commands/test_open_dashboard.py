import pytest

from runtimes.service_home.server_registry import lock_home
from tests.clients.commands.command_process import CommandHome

SSH = {"SSH_CONNECTION": "198.51.100.9 4711 192.0.2.2 22", "USER": "me"}


def test_nothing_runs(lonely: CommandHome) -> None:
    done = lonely.run("svc", "open")
    assert done.code == 1
    assert done.problem.startswith("no dashboard runs on ")


@pytest.mark.parametrize(
    ("host", "path", "url"),
    [
        ("127.0.0.1", "", "http://127.0.0.1:9119"),
        ("0.0.0.0", "/board", "http://127.0.0.1:9119/board"),
        ("::", "", "http://[::1]:9119"),
    ],
)
def test_the_address_and_the_way_over_ssh(lonely: CommandHome, host: str, path: str, url: str) -> None:
    claim = lock_home(lonely.home / "svc", "dashboard", version="1.0.0")
    try:
        claim.publish({"host": host, "port": 9119, "inside": "http://127.0.0.1:9119", "root_path": path})
        hint = "ssh -L 9119:127.0.0.1:9119 me@192.0.2.2, then open http://127.0.0.1:9119"
        assert lonely.run("svc", "open", env=SSH).out == f"{url}\nOn your own computer: {hint}\n"
        assert lonely.run("svc", "open", "--print", env=SSH).out == f"{url}\n"
        assert lonely.run("svc", "open", "--json").json == {"url": url, "ssh": None}
    finally:
        claim.release()
