import pytest
from hypothesis import given
from hypothesis import strategies as st

from svc_proto.machines.sandbox import Sandbox, normal_path, protected_paths


def box(*roots: str, home: str = "/home/u", ours: tuple[str, ...] = ()) -> Sandbox:
    ours = protected_paths(home=home, service_home=f"{home}/.svc", ours=ours)
    return Sandbox(roots=roots, protected=ours, homes=(f"{home}/.svc/",))


BOX = box("/tmp/", "/home/u/.svc/workspace", "/srv/media/../shared")


@pytest.mark.parametrize(
    "path", ["/tmp/a.png", "/tmp/deep/er/a.png", "/home/u/.svc/workspace/x", "/srv/shared/film.mkv", "/tmp//a/./b.png"]
)
def test_inside_the_roots(path: str) -> None:
    assert BOX.allows(path)


OUTSIDE = """
/ /tmpfile /etc/passwd /tmp/../etc/passwd /srv/media/x /home/u/notes.txt /home/u/.ssh/id_ed25519 /home/u/.svc/svc.db
/tmp/krb5cc_1000 /tmp/krb5cc_1000_abc/tkt /tmp/x509up_u1000 /tmp/xauth_Rk2Q9x /tmp/kubectl-edit-31.yaml
"""


@pytest.mark.parametrize("path", OUTSIDE.split())
def test_outside_the_roots(path: str) -> None:
    assert not BOX.allows(path)


def test_protected_paths_stay_protected_under_a_wide_root() -> None:
    wide = box("/", ours=("/home/u/.svc-relay/",))
    assert wide.allows("/home/u/film.mkv")
    for path in ("/etc/shadow", "/home/u/.aws/credentials", "/home/u/.svc/.env", "/home/u/.svc/pairing/x", "/root/x"):
        assert not wide.allows(path)
    for name in (".netrc", ".git-credentials", ".env", ".npmrc", ".pgpass", ".bash_history", ".mozilla/x/logins.json"):
        assert not wide.allows(f"/home/u/{name}")
    for path in ("memories/USER.md", "spool/a", "images/inbox/a.png", "log/relay.log", "run/api.json"):
        assert not wide.allows(f"/home/u/.svc/{path}")
        assert not box(f"/home/u/.svc/{path.partition('/')[0]}").allows(f"/home/u/.svc/{path}")
    assert wide.allows("/home/u/.svc/images/a.png")
    assert not wide.allows("/home/u/.svc-relay/recordings/a.wav")
    own = box("/root/.svc/workspace", home="/root")
    assert own.allows("/root/.svc/workspace/a.png")
    assert not own.allows("/root/.ssh/id")


@pytest.mark.parametrize("root", ["/", "/home/u", "/home/u/.svc"])
def test_service_home_is_protected_except_images_and_roots(root: str) -> None:
    wide = box(root, "/home/u/.svc/workspace")
    for name in ("mcp-relay.json", "phone-session", "phone-screen", "before-restore-1/.env", "of-a-later-version"):
        assert not wide.allows(f"/home/u/.svc/{name}")
    assert wide.allows("/home/u/.svc/workspace/a.png")
    assert wide.allows("/home/u/.svc/images/a.png")
    assert not wide.allows("/home/u/.svc/images/inbox/a.png")
    assert not box("/tmp").allows("/home/u/.svc/images/a.png")


@given(st.lists(st.sampled_from(["a", "b", "..", ".", "", "tmp"]), max_size=8))
def test_a_normal_path_has_no_dots_and_is_stable(parts: list[str]) -> None:
    path = normal_path("/".join(parts))
    assert path.startswith("/")
    assert not {".", ".."} & set(path.split("/"))
    assert normal_path(path) == path
