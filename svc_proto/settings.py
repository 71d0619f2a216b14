"""Parsing of settings: text from the environment and start options to checked values. An option overrides its variable.

An empty variable counts as unset.
"""

import re
import shlex
from collections.abc import Mapping, Sequence
from ipaddress import ip_network
from urllib.parse import parse_qsl, unquote, urlsplit

from attrs import field

from svc_proto.basics.brand import BRANDS, Brand
from svc_proto.basics.fast_frozen import fast_frozen
from svc_proto.basics.sanitize import is_printable_ascii
from svc_proto.basics.validate import FALSE_WORDS, MAX_SECONDS, TRUE_WORDS
from svc_proto.commands import Level

__all__ = ["S3Bucket", "ConfigError", "HttpAddress", "RedisAddress", "SettingsSource", "http_address"]

MAX_DIGITS = 12  # of a whole number in a setting
MAX_PREFIX = 200  # characters of a path
MAX_DB_DIGITS = 4  # of the number of a Redis database
MIN_TOKEN = 16  # characters of a token that other hosts can guess at
_S3 = re.compile(r"s3://([a-z0-9][a-z0-9.-]{1,61}[a-z0-9])((?:/[A-Za-z0-9_-][A-Za-z0-9._-]*)*/?)(?:\?([!-~]*))?")
_REGION = re.compile(r"[a-z0-9-]{1,32}")
_FOLDER = re.compile(r"(?:/(?!\.{1,2}(?:/|$))[^/\0?#%]+)+/?")
_PREFIX = re.compile(r"(?:/(?!\.{1,2}(?:/|$))[A-Za-z0-9._~-]+)+")


class ConfigError(ValueError):
    """A setting is unusable. The message names the variable or option, or the required form."""


@fast_frozen
class HttpAddress:
    """Address of an HTTP server."""

    host: str
    port: int | None  # None: not given
    tls: bool


@fast_frozen
class RedisAddress:
    """Address of a Redis or Valkey, or of Sentinels that report it, with our credentials."""

    host: str = ""  # the path of a Unix socket if it begins with a slash
    port: int = 6379
    tls: bool = False
    user: str = ""
    password: str = field(default="", repr=False)
    db: int = 0
    sentinels: tuple[tuple[str, int], ...] = ()  # hosts and ports; empty: the server is at `host`
    master: str = ""  # name of the server at the Sentinels
    sentinel_user: str = ""
    sentinel_password: str = field(default="", repr=False)


@fast_frozen
class S3Bucket:
    """An S3-compatible store: address of our folder, and our credentials."""

    url: str  # of our folder, without a slash at its end
    region: str
    key: str
    secret: str = field(repr=False)
    token: str = field(default="", repr=False)  # of temporary credentials


def http_address(url: str) -> HttpAddress | None:
    """Return the parts of an http:// or https:// URL with a host, without an `@` or port 0; None for anything else."""
    try:
        parts = urlsplit(url)
        host, port, scheme = parts.hostname or "", parts.port, parts.scheme
    except ValueError:
        return None
    if not host or port == 0 or scheme not in ("http", "https") or "@" in url:
        return None
    return HttpAddress(host, port, scheme == "https")


@fast_frozen
class SettingsSource:
    """An environment, and the given start options (without those that are `None`), with readers of values.

    A reader raises `ConfigError` for a value that it does not accept.
    """

    env: Mapping[str, str]
    options: Mapping[str, object]

    def option(self, name: str) -> object:
        """Return a start option as it was given, or None."""
        return self.options.get(name)

    def named(self, variable: str, option: str | None) -> tuple[str, str | None]:
        """Return the setting's name for messages, and its text; None in place of the text if unset."""
        if option is not None and option in self.options:
            return f"--{option.replace('_', '-')}", str(self.options[option])
        return variable, self.env.get(variable, "").strip() or None

    def text(self, variable: str, option: str | None) -> str | None:
        """Return text; None if unset."""
        return self.named(variable, option)[1]

    def integer(self, variable: str, default: int, *, low: int, high: int, option: str | None = None) -> int:
        """Return a whole number from `low` to `high`; `default` if unset. Raise `ConfigError` for other values."""
        name, text = self.named(variable, option)
        if text is None:
            return default
        digits = text.isascii() and text.isdecimal() and len(text) <= MAX_DIGITS
        if not digits or not low <= int(text) <= high:
            raise ConfigError(f"{name} must be a whole number from {low} to {high}, not {text!r}")
        return int(text)

    def port(self, variable: str, option: str | None, default: int) -> int:
        """Return a port, where 0 picks a free one; `default` if unset."""
        return self.integer(variable, default, low=0, high=65_535, option=option)

    def duration(self, variable: str) -> float | None:
        """Return a duration in whole seconds; None for 0 or unset."""
        value = self.integer(variable, 0, low=0, high=int(MAX_SECONDS))
        return float(value) or None

    def boolean(self, variable: str, *, default: bool = False) -> bool:
        """Return 0 or 1, in the usual spellings, as a boolean; `default` if unset.

        Raise `ConfigError` for other values.
        """
        text = (self.env.get(variable) or "").strip().lower()
        if not text:
            return default
        if text not in (*TRUE_WORDS, *FALSE_WORDS):
            raise ConfigError(f"{variable} must be 0 or 1, not {text!r}")
        return text in TRUE_WORDS

    def prefix(self, variable: str) -> str:
        """Return the path under which a proxy serves a server, such as `/relay`; the option is `root_path`.

        Empty if unset: the server has a host name or a port of its own. Raise `ConfigError` for other values.
        """
        name, text = self.named(variable, "root_path")
        path = (text or "").rstrip("/")
        if path and (not _PREFIX.fullmatch(path) or len(path) > MAX_PREFIX):
            raise ConfigError(f"{name} must be a path such as /relay, not {text!r}")
        return path

    def level(self, variable: str, option: str) -> Level:
        """Return a log level by its name in any case; INFO if unset. Raise `ConfigError` for other values."""
        name, text = self.named(variable, option)
        try:
            return Level[(text or "INFO").upper()]
        except KeyError:
            raise ConfigError(f"{name} must be DEBUG, INFO, WARNING or ERROR, not {text!r}") from None

    def json_log(self) -> bool:
        """Report whether log records are to be JSON, one object a line."""
        return self.choice("SVC_LOG_FORMAT", "log_format", ("text", "json")) == "json"

    def url(self, variable: str, option: str | None, default: str) -> str:
        """Return an http:// or https:// URL without a slash at its end; `default` if unset.

        Raise `ConfigError` for other values.
        """
        name, text = self.named(variable, option)
        url = text or default
        if url and http_address(url) is None:
            raise ConfigError(f"{name} must be an http:// or https:// URL with a host, without a password")
        return url.rstrip("/")

    def shell(self, variable: str, option: str) -> str | None:
        """Return an absolute path of a program; None if unset. Raise `ConfigError` for other values."""
        name, text = self.named(variable, option)
        if text is not None and not text.startswith("/"):
            raise ConfigError(f"{name} must be an absolute path, not {text!r}")
        return text

    def certificate(self, cert: str, key: str) -> tuple[str | None, str | None]:
        """Return the paths of a certificate and its key, both or none; none with the option `no_ssl`.

        Raise `ConfigError` if only one is set.
        """
        if self.option("no_ssl") is True:
            return None, None
        paths = self.text(cert, None), self.text(key, None)
        if (paths[0] is None) != (paths[1] is None):
            raise ConfigError(f"{cert} and {key} must be set together")
        return paths

    def command(self, variable: str) -> tuple[str, ...]:
        """Return a command line, split as a shell does; empty if unset. Raise `ConfigError` for other values."""
        try:
            return tuple(shlex.split(self.env.get(variable) or ""))
        except ValueError:
            raise ConfigError(f"{variable} must be a command line with matching quotes") from None

    def choice(self, variable: str, option: str | None, allowed: Sequence[str]) -> str | None:
        """Return one of the allowed words; None if unset. Raise `ConfigError` for other values."""
        name, text = self.named(variable, option)
        if text not in (None, *allowed):
            raise ConfigError(f"{name} must be {', '.join(allowed[:-1])} or {allowed[-1]}, not {text!r}")
        return text

    def split_list(self, variable: str, default: str = "", separator: str = ",") -> tuple[str, ...]:
        """Return the parts between separators, without blanks around them and without empty parts.

        If the variable is unset, `default` is split.
        """
        return tuple(part.strip() for part in (self.text(variable, None) or default).split(separator) if part.strip())

    def networks(self, variable: str, default: str) -> tuple[str, ...]:
        """Return addresses and networks, which are separated by commas; those of `default` if unset.

        Raise `ConfigError` for other values.
        """
        parts = self.split_list(variable, default)
        for part in parts:
            try:
                ip_network(part, strict=False)
            except ValueError:
                example = "addresses and networks such as 192.168.1.2 or 10.0.0.0/8"
                raise ConfigError(f"{variable} must hold {example}, not {part!r}") from None
        return parts

    def names(self, variable: str) -> tuple[str, ...]:
        """Return names of environment variables, which are separated by commas or spaces; empty if unset.

        A `*` at the end of a name marks a prefix. Raise `ConfigError` for other values.
        """
        names = tuple((self.env.get(variable) or "").replace(",", " ").split())
        for name in names:
            if not name.removesuffix("*").isidentifier():
                raise ConfigError(f"{variable} must hold names of variables, not {name!r}")
        return names

    def pairing_code(self, variable: str) -> str | None:
        """Return a pairing code in upper case; None if unset. Raise `ConfigError` for other values."""
        text = self.text(variable, None)
        if text is None:
            return None
        if len(text) != 6 or not (text.isascii() and text.isalnum()):
            raise ConfigError(f"{variable} must be six characters of A-Z and 0-9")
        return text.upper()

    def absolute_paths(self, variable: str, separator: str) -> tuple[str, ...]:
        """Return absolute paths, which are separated by `separator`; empty if unset.

        Raise `ConfigError` for other values.
        """
        roots = self.split_list(variable, separator=separator)
        for root in roots:
            if not root.startswith("/"):
                raise ConfigError(f"{variable} must hold absolute paths, not {root!r}")
        return roots

    def absolute_path(self, variable: str) -> str | None:
        """Return an absolute path; None if unset. Raise `ConfigError` for other values."""
        text = self.text(variable, None)
        if text is not None and not text.startswith("/"):
            raise ConfigError(f"{variable} must be an absolute path, not {text!r}")
        return text

    def metrics_token(self) -> str:
        """Return the token of a monitor; empty: no token, and access for programs of this host only.

        Raise `ConfigError` for other values.
        """
        token = self.text("SVC_METRICS_TOKEN", None) or ""
        if token and (len(token) < MIN_TOKEN or not is_printable_ascii(token)):
            text = f"at least {MIN_TOKEN} characters, all of them printable ASCII without spaces"
            raise ConfigError(f"SVC_METRICS_TOKEN must have {text}")  # it is never quoted: it is a secret
        return token

    def brand(self, variable: str, option: str) -> Brand:
        """Return a brand by its name in any case; `SVC` if unset. Raise `ConfigError` for other values."""
        name, text = self.named(variable, option)
        brand = BRANDS.get((text or "svc").lower())
        if brand is None:
            raise ConfigError(f"{name} must be one of {', '.join(BRANDS)}, not {text!r}")
        return brand

    def redis(self, variable: str) -> RedisAddress | None:
        """Return the address of the cluster's Redis; None if unset.

        Forms: redis://USER:PASSWORD@HOST:PORT/DB, rediss:// for TLS; unix://USER:PASSWORD@/PATH?db=DB; or
        redis+sentinel://USER:PASSWORD@HOST:PORT,HOST:PORT/MASTER/DB with the options sentinel_username and
        sentinel_password, and rediss+sentinel:// for TLS with both, as in clients of Redis.
        Raise `ConfigError` for other values.
        """
        text = self.text(variable, None)
        if text is None:
            return None
        found = _sentinel_address(text) if "+sentinel://" in text else _redis_address(text)
        if found is None:  # it is never quoted: it holds a password
            text = (
                "redis:// or rediss:// with USER:PASSWORD@HOST:PORT/DB, or unix:///PATH?db=DB, "
                "or redis+sentinel:// or rediss+sentinel:// with USER:PASSWORD@HOST:PORT,HOST:PORT/MASTER/DB"
            )
            raise ConfigError(f"{variable} must be {text}")
        return found

    def media_store(self, variable: str) -> S3Bucket | str | None:
        """Return the shared upload store: the path of a folder for file:///FOLDER, or a bucket for s3://BUCKET/PREFIX.

        Return None if the variable is unset: each node has an upload store of its own.
        Raise `ConfigError` for other values.
        """
        text = self.text(variable, None)
        if text is None:
            return None
        folder = text.removeprefix("file://")
        if folder != text and _FOLDER.fullmatch(folder):
            return folder.rstrip("/")
        found = _S3.fullmatch(text)
        asked = {} if found is None else dict(parse_qsl(found[3] or "", keep_blank_values=True))
        region, endpoint = asked.get("region", "us-east-1"), asked.get("endpoint", "")
        good = found is not None and asked.keys() <= {"endpoint", "region"} and _REGION.fullmatch(region)
        place = http_address(endpoint) if endpoint else None
        if found is None or not good or (endpoint and (place is None or urlsplit(endpoint).path.strip("/"))):
            text = "file:///FOLDER, or s3://BUCKET/PREFIX?endpoint=https://HOST:PORT&region=REGION"
            raise ConfigError(f"{variable} must be {text}")
        names = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY")
        key, secret = (self.text(name, None) or "" for name in names)
        token = self.text("AWS_SESSION_TOKEN", None) or ""
        if not key or not secret or not all(map(is_printable_ascii, (key, secret, token or "-"))):
            raise ConfigError(f"{variable} needs {' and '.join(names)}, in printable ASCII")  # which are never quoted
        bucket, prefix = found[1], found[2].rstrip("/")
        url = f"{endpoint.rstrip('/')}/{bucket}" if endpoint else f"https://{bucket}.s3.{region}.amazonaws.com"
        return S3Bucket(url=url + prefix, region=region, key=key, secret=secret, token=token)


def _redis_address(url: str, usual: int = 6379) -> RedisAddress | None:
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port
    except ValueError:
        return None
    if parts.scheme == "unix":
        named = not host and port is None and len(parts.path) > 1 and "\0" not in (host := unquote(parts.path))
        db = (parts.query or "db=0").removeprefix("db=")
    else:
        named = parts.scheme in ("redis", "rediss") and bool(host) and port != 0 and not parts.query
        db = parts.path.strip("/") or "0"
    if not named or parts.fragment or not (db.isascii() and db.isdecimal() and len(db) <= MAX_DB_DIGITS):
        return None
    return RedisAddress(
        host=host,
        port=port or usual,
        tls=parts.scheme == "rediss",
        user=unquote(parts.username or ""),
        password=unquote(parts.password or ""),
        db=int(db),
    )


def _sentinel_address(url: str) -> RedisAddress | None:
    """Parse the address of Sentinels, which may have several hosts; None if it is invalid.

    Each host is parsed as a URL of its own, since several are no URL (RFC 3986).
    """
    scheme, _, rest = url.partition("://")
    place, _, options = rest.partition("?")
    authority, _, path = place.partition("/")
    login, at, hosts = authority.rpartition("@")
    found = [_redis_address(f"redis://{login}{at}{host}", 26379) for host in hosts.split(",")]
    master, _, db = path.partition("/")
    given = dict(pair.partition("=")[::2] for pair in options.split("&") if pair)
    wrong = None in found or given.keys() - {"sentinel_username", "sentinel_password"} or "#" in url
    if scheme not in ("redis+sentinel", "rediss+sentinel") or wrong or not master:
        return None
    db = db or "0"
    if not (db.isascii() and db.isdecimal() and len(db) <= MAX_DB_DIGITS):
        return None
    each = [address for address in found if address is not None]
    return RedisAddress(
        tls=scheme == "rediss+sentinel",
        user=each[0].user,
        password=each[0].password,
        db=int(db),
        sentinels=tuple((address.host, address.port) for address in each),
        master=unquote(master),
        sentinel_user=unquote(given.get("sentinel_username", "")),
        sentinel_password=unquote(given.get("sentinel_password", "")),
    )
