"""The media service: allowed and protected folders, display names, content types, base64 and old uploads."""

import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st

from svc_proto.basics.errors import Refused
from svc_proto.commands import Compute, Level, OpenFile, SweepFolder
from svc_proto.facts import Started
from svc_proto.relay.media.media_service import base64_bytes, content_type_field, display_name
from svc_proto.relay_config import RelayConfig, parse_relay_config
from tests.relay.harness import RelayHarness


def started(config: RelayConfig, *links: tuple[str, str], folders: tuple[str, ...] = ()) -> RelayHarness:
    book = RelayHarness(config, started=False)
    for folder in folders:
        book.disk.folder(folder)
    for path, target in links:
        book.disk.symlink(path, target)
    book.feed(Started())
    assert book.ready
    assert book.node.operations.open_handles == 0
    return book


def test_roots_are_resolved_through_links_and_parents() -> None:
    config = RelayConfig(home="/h/svc", workspace="/work", media_allowed_roots=("/a", "/b/c"), temp_dir="/tmp")
    book = started(
        config, ("/tmp", "/private/tmp"), ("/work", "/data/work"), folders=("/private/tmp", "/data/work", "/a", "/b/c")
    )
    assert book.relay.media.sandbox.roots == ("/private/tmp", "/data/work", "/a", "/b/c")
    config = RelayConfig(home="/home/me/.svc", workspace="/home/me/.svc/workspace")
    book = started(config, ("/home/me", "/data/me"), folders=("/data/me", "/tmp"))
    assert book.relay.media.sandbox.roots == ("/tmp", "/data/me/.svc/workspace")
    env = {"SVC_RELAY_HOME": "/srv", "SVC_HOME": "/srv", "SVC_WORKSPACE": "/srv/workspace"}
    sandbox = started(parse_relay_config(env), folders=("/srv/workspace",)).relay.media.sandbox
    assert sandbox.allows("/srv/workspace/a.png")
    assert not sandbox.allows("/srv/voice-output-runs/a.wav")
    config = RelayConfig(home="/var/roothome/.svc", workspace="/var/roothome/pictures", user_home="/var/roothome")
    book = started(config, ("/root", "/var/roothome"), folders=("/var/roothome/pictures",))
    assert book.relay.media.sandbox.allows("/var/roothome/pictures/a.png")


def test_shared_uploads_are_at_the_real_path_of_their_folder() -> None:
    config = RelayConfig(home="/h/svc", media_store="/mnt/uploads")
    book = started(config, ("/mnt/uploads", "/data/uploads"), folders=("/data/uploads", "/tmp"))
    assert book.relay.media.uploads.folder == "/data/uploads"


def test_roots_are_used_by_name_if_they_cannot_be_resolved() -> None:
    config = RelayConfig(home="/h/svc", workspace="/work", media_allowed_roots=("/a",), temp_dir="/tmp")
    book = RelayHarness(config, started=False)
    book.disk.symlink("/tmp", "/private/tmp")
    book.refuse = (Compute,)
    book.feed(Started())
    assert book.relay.media.sandbox.roots == ("/tmp", "/work", "/a")
    assert "/h/svc/.env" in book.relay.media.sandbox.protected
    assert "media places taken by name" in book.events(Level.WARNING)
    book = RelayHarness(RelayConfig(workspace="/work"), started=False)
    book.refuse = (OpenFile,)
    book.feed(Started())
    assert book.relay.media.sandbox.roots == ("/tmp", "/work")


def test_protected_paths_stay_protected_and_their_roots_are_reported() -> None:
    config = RelayConfig(
        home="/home/me/.svc",
        user_home="/home/me",
        media_allowed_roots=("/home/me", "/data"),
        ssl_key="/home/me/tls.key",
    )
    links = (("/home/me", "/data/me"), ("/data/me/.ssh", "/data/dotfiles/ssh"), ("/data/me/.svc", "/data/svc"))
    book = started(config, *links, folders=("/data/me", "/data/dotfiles/ssh", "/data/svc"))
    sandbox = book.relay.media.sandbox
    for path in ("/data/dotfiles/ssh/id_ed25519", "/data/svc/.env", "/data/svc/mcp-relay.json", "/data/me/tls.key"):
        assert not sandbox.allows(path)
        assert not sandbox.allows(path.replace("/data/me", "/home/me"))
    assert sandbox.allows("/data/me/film.mkv")
    config = RelayConfig(home="/h/svc", workspace="/work", media_allowed_roots=("/a", "/etc"), temp_dir="/tmp")
    book = started(config, folders=("/a", "/etc", "/tmp"))
    told = [log.fields for log in book.logs if log.event == "media root is protected, no file of it is served"]
    assert told == [{"root": "/etc"}]


def test_files_of_the_relay_are_protected_in_any_folder() -> None:
    env = {"SVC_RELAY_HOME": "/srv/relay", "RELAY_REALTIME_VOICE_RUN_DIR": "/srv/runs", "SVC_HOME": "/home/me/.svc"}
    config = parse_relay_config({**env, "RELAY_MEDIA_ALLOWED_ROOTS": "/srv", "RELAY_HERMES_CONFIG": "/srv/svc.yaml"})
    sandbox = started(config, folders=("/srv",)).relay.media.sandbox
    for path in ("/srv/relay/voice-output-runs/a.wav", "/srv/relay/x", "/srv/runs/a.wav", "/srv/svc.yaml"):
        assert not sandbox.allows(path)
    assert sandbox.allows("/srv/film.mkv")
    config = parse_relay_config(
        {"RELAY_MEDIA_ALLOWED_ROOTS": "/srv", "SVC_HOME": "/home/me/.svc"},
        store_files=["/srv/chats.db", "/srv/chats.db-wal"],
    )
    book = started(config, folders=("/srv",))
    assert not book.relay.media.sandbox.allows("/srv/chats.db")
    assert not book.relay.media.sandbox.allows("/srv/chats.db-wal")
    assert book.relay.media.sandbox.allows("/srv/chats.dbx")


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        ([None, "", "/", "\r\n"], None),
        (["a.txt", "C:\\x\\a.txt"], "a.txt"),
        (["/etc/passwd"], "passwd"),
        (["a\r\nb"], "ab"),
        (["\udcff"], "?"),
        (["x" * 300], "x" * 255),
    ],
)
def test_display_names(names: list[str | None], expected: str | None) -> None:
    for name in names:
        assert display_name(name) == expected


@pytest.mark.parametrize(
    "value",
    [
        *("text/plain", " image/png ", "text/plain; charset=utf-8", "application/vnd.x+json"),
        "a/" + "b" * 127 + "; c=" + "d" * 67,
    ],
)
def test_content_types(value: str) -> None:
    assert content_type_field(value, "x") == value.strip()


@pytest.mark.parametrize(
    "value",
    ["", "text", "a/b/c", "text/pläin", "a/b; \x00", None, 5, "a/" + "b" * 200, "a/" + "b" * 127 + "; c=" + "d" * 68],
)
def test_invalid_content_types_are_refused(value: object) -> None:
    with pytest.raises(Refused) as refused:
        content_type_field(value, "x")
    assert (refused.value.status, refused.value.extra["field"]) == (400, "x")


@given(st.binary(min_size=1, max_size=50))
def test_base64_is_decoded(data: bytes) -> None:
    assert base64_bytes(base64.b64encode(data).decode(), "x") == data


@pytest.mark.parametrize(
    "value", ["", "QQ", "QQ=", "QUJD=", "QUJD==", "Q Q=", "QQ==\n", "QQ==QQ==", "-_-_", "ä", None, b"QQ=="]
)
def test_invalid_base64_is_refused(value: object) -> None:
    with pytest.raises(Refused) as refused:
        base64_bytes(value, "x")
    assert (refused.value.status, refused.value.extra["field"]) == (400, "x")


def test_later_worker_does_not_sweep_uploads() -> None:
    for begins in (True, False):
        book = RelayHarness(RelayConfig(begins=begins, pairing_code="Q7M2ZK"), started=False)
        book.feed(Started())
        assert any(isinstance(command, SweepFolder) for command in book.commands) is begins
        answer = book.websocket().auth(pairing_code="Q7M2ZK")
        assert answer["type"] == ("auth.ok" if begins else "auth.fail")
