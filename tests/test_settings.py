from collections.abc import Callable

import pytest

from svc_proto.basics.brand import HERMES, SVC
from svc_proto.commands import Level
from svc_proto.settings import MAX_PREFIX, ConfigError, HttpAddress, RedisAddress, SettingsSource, http_address


def settings(options: dict[str, object] | None = None, **env: str) -> SettingsSource:
    return SettingsSource(env, options or {})


def test_an_option_beats_its_variable_and_empty_is_unset() -> None:
    assert settings({"host": "b"}, HOST="a").text("HOST", "host") == "b"
    assert settings(HOST=" a ").text("HOST", "host") == "a"
    assert settings(HOST="  ").text("HOST", "host") is None
    assert settings().integer("N", 7, low=0, high=9) == 7


def test_values() -> None:
    given = settings(N="8", SPAN="0", L="debug", URL="http://h:1/", CMD="a 'b c'", CODE="ab12cd")
    assert given.integer("N", 7, low=0, high=9) == 8
    assert given.duration("SPAN") is None
    assert [settings(X=word).boolean("X") for word in ("1", "true", "yes", "On")] == [True] * 4
    assert [settings(X=word).boolean("X", default=True) for word in ("0", "FALSE", "no", "off")] == [False] * 4
    assert given.boolean("MISSING", default=True) is True
    assert given.level("L", "log_level") is Level.DEBUG
    assert given.url("URL", "url", "") == "http://h:1"
    assert given.url("MISSING", "url", "") == ""
    assert given.command("CMD") == ("a", "b c")
    assert given.pairing_code("CODE") == "AB12CD"
    assert given.pairing_code("MISSING") is None
    assert settings(B="Hermes").brand("B", "brand") is HERMES
    assert settings().brand("B", "brand") is SVC
    assert settings(R="/a: :/b").absolute_paths("R", ":") == ("/a", "/b")
    assert settings(R="/a").absolute_path("R") == "/a"
    assert settings(P="0").port("P", None, 5) == 0
    longest = f"/{'a' * (MAX_PREFIX - 1)}"
    paths = {"": "", "/": "", "/relay/": "/relay", "/a/b.c~": "/a/b.c~", longest: longest}
    assert {path: settings(P=path).prefix("P") for path in paths} == paths
    assert settings({"root_path": "/b"}, P="/a").prefix("P") == "/b"


@pytest.mark.parametrize(
    ("read", "says"),
    [
        (lambda given: given.integer("X", 1, low=0, high=9), "X must be a whole number from 0 to 9"),
        (lambda given: given.integer("X", 1, low=0, high=9, option="the_x"), "--the-x must be a whole number"),
        (lambda given: given.boolean("X"), "X must be 0 or 1"),
        (lambda given: given.level("X", "level"), "X must be DEBUG"),
        (
            lambda given: SettingsSource({"SVC_LOG_FORMAT": "xml"}, {}).json_log(),
            "SVC_LOG_FORMAT must be text or json, not 'xml'",
        ),
        (lambda given: given.url("X", "url", ""), "X must be an http"),
        (lambda given: given.shell("X", "shell"), "X must be an absolute path"),
        (lambda given: given.command("X"), "X must be a command line"),
        (lambda given: given.pairing_code("X"), "X must be six characters"),
        (lambda given: given.absolute_paths("X", ":"), "X must hold absolute paths"),
        (lambda given: given.absolute_path("X"), "X must be an absolute path"),
        (lambda given: given.brand("X", "brand"), "X must be one of svc, hermes"),
    ],
)
def test_invalid_values_are_named(read: Callable[[SettingsSource], object], says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        read(settings({"the_x": "'"}, X="'"))


@pytest.mark.parametrize("path", ["relay", "/a//b", "/a/../b", "/.", "/a b", "/a?b", "/a%2Fb", "/é", f"/{'a' * 200}"])
def test_no_prefix(path: str) -> None:
    with pytest.raises(ConfigError, match="--root-path must be a path such as /relay, not "):
        settings({"root_path": path}).prefix("P")


def test_a_token_of_a_monitor() -> None:
    assert settings().metrics_token() == ""
    assert settings(SVC_METRICS_TOKEN="x" * 16).metrics_token() == "x" * 16
    for token in ("x" * 15, "x" * 16 + " y", "ü" * 16):
        with pytest.raises(ConfigError, match="SVC_METRICS_TOKEN must have at least 16 characters") as caught:
            settings(SVC_METRICS_TOKEN=token).metrics_token()
        assert token not in str(caught.value)


def test_the_ends_of_a_range_belong_to_it() -> None:
    assert [settings(N=text).integer("N", 7, low=2, high=9) for text in ("2", "9", "0" * 11 + "9")] == [2, 9, 9]
    assert settings(P="65535").port("P", None, 5) == 65_535
    for text in ("1", "10", "-2", "2.0", "0" * 12 + "9", "9" * 5000, "٣"):
        with pytest.raises(ConfigError, match="a whole number from 2 to 9"):
            settings(N=text).integer("N", 7, low=2, high=9)


@pytest.mark.parametrize("url", ["", "ftp://h", "http://", "http://h:0", "http://h:x", "http://u:p@h", "http://[::1"])
def test_no_address(url: str) -> None:
    assert http_address(url) is None


def test_addresses() -> None:
    assert http_address("https://h/p") == HttpAddress("h", None, tls=True)
    assert http_address("http://[::1]:80") == HttpAddress("::1", 80, tls=False)


def test_the_format_of_the_log() -> None:
    assert not SettingsSource({}, {}).json_log()
    assert SettingsSource({"SVC_LOG_FORMAT": "json"}, {}).json_log()
    assert not SettingsSource({"SVC_LOG_FORMAT": "json"}, {"log_format": "text"}).json_log()


def test_redis_addresses() -> None:
    assert settings().redis("R") is None
    assert settings(R="redis://h").redis("R") == RedisAddress("h")
    found = settings(R="rediss://svc:p%40ss@h.example:7000/12").redis("R")
    assert found == RedisAddress("h.example", 7000, tls=True, user="svc", password="p@ss", db=12)
    assert "p@ss" not in repr(found)
    assert settings(R="redis://:pw@[::1]/").redis("R") == RedisAddress("::1", password="pw")
    assert settings(R="unix:///run/redis.sock").redis("R") == RedisAddress("/run/redis.sock")
    found = settings(R="unix://svc:pw@/run/a%20b.sock?db=3").redis("R")
    assert found == RedisAddress("/run/a b.sock", user="svc", password="pw", db=3)
    for url in ("redis://h/1234", "unix:///r?db=1234", "redis+sentinel://a/svc/1234"):
        found = settings(R=url).redis("R")
        assert found is not None
        assert found.db == 1234


def test_sentinel_addresses() -> None:
    found = settings(R="redis+sentinel://a,b.example:7000,[::1]/svc").redis("R")
    assert found == RedisAddress(master="svc", sentinels=(("a", 26379), ("b.example", 7000), ("::1", 26379)))
    url = "rediss+sentinel://me:p%2Cw@a,b/my%20master/3?sentinel_username=s&sentinel_password=q%26"
    assert settings(R=url).redis("R") == RedisAddress(
        tls=True, user="me", password="p,w", db=3, sentinels=(("a", 26379), ("b", 26379)), master="my master",
        sentinel_user="s", sentinel_password="q&",
    )  # fmt: skip
    assert "p,w" not in repr(settings(R=url).redis("R"))
    assert "q&" not in repr(settings(R=url).redis("R"))
    wrongs = ("//a", "//a/", "///svc", "//a,/svc", "//a:x/svc", "//a/svc/x", "//a/svc?x=secret", "//a/svc#", "//[/s")
    for wrong in wrongs:
        with pytest.raises(ConfigError, match=r"^R must be redis://") as caught:
            settings(R=f"redis+sentinel:{wrong}").redis("R")
        assert "secret" not in str(caught.value)
    with pytest.raises(ConfigError, match=r"^R must be redis://"):
        settings(R="http+sentinel://a/svc").redis("R")


@pytest.mark.parametrize(
    "url",
    [
        "h:6379", "http://secret@h", "redis://", "redis://:secret@", "redis://secret@h:0", "redis://secret@h:x",
        "redis://secret@h/x", "redis://secret@h/1/2", "redis://secret@h/12345", "redis://secret@h/\u0661",
        "redis://secret@h?db=1", "redis://secret@h#1", "redis://secret@[h",
        "unix://secret@h/run/r", "unix://:secret@", "unix:///", "unix:///secret%00", "unix:///secret?db=", "unix:///secret?db=x",
        "unix://:1/secret", "unix:///secret#1",
    ],
)  # fmt: skip
def test_invalid_redis_urls_are_not_quoted(url: str) -> None:
    with pytest.raises(ConfigError, match=r"^R must be redis://") as caught:
        settings(R=url).redis("R")
    assert "secret" not in str(caught.value)
