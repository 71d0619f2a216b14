"""Observations of this host for the health checks that need files, the disk, the database or the environment."""

import os
import shutil
import socket
import sqlite3
import ssl
import stat
import time
from collections.abc import Mapping, Sequence
from contextlib import closing, suppress
from pathlib import Path
from urllib.parse import quote

from attrs import evolve

from runtimes.failures import HostError
from runtimes.files.env_file import EnvFileError, read_env_file
from runtimes.host.compute import load_yaml
from runtimes.service_home.home import ENV_FILE
from runtimes.service_home.server_registry import find_running_servers
from runtimes.store.store_factory import configured_store, store_files
from runtimes.store.store_service import StoreError
from runtimes.tls.contexts import TlsFileError, context_for_certificates, server_context
from servers.config_report import find_config_problems
from svc_proto.api.agent_settings import build_agent_settings
from svc_proto.api.config import MODEL_URL, model_url_source, parse_api_config
from svc_proto.basics.dotenv import merge_env_file
from svc_proto.basics.sanitize import sanitize_line
from svc_proto.basics.variable_names import find_unknown_variables, unknown_variable_text
from svc_proto.settings import ConfigError

__all__ = ["LAST_BACKUP", "collect_host_report", "inspect_certificate", "model_settings", "record_backup"]

LAST_BACKUP = "last-backup"  # in the folder of running servers: its time is that of the last backup
RUN = "run"
LOCK_TIMEOUT = 1.0  # s for a database that another program has locked
CONNECT_TIMEOUT = 1.0  # s for a database on another host
CONTAINER_MARKS = ("/.dockerenv", "/run/.containerenv")
SECRET_FILES = (ENV_FILE, "svc.db", "local-secret")
PATHS = ("RELAY_TERMINAL_SHELL", "SVC_CONFIG", "RELAY_HERMES_CONFIG", "RELAY_SSL_CERT", "RELAY_SSL_KEY")
SERVER_MEMBERS = ("role", "port", "host", "version", "brand", "inside", "key", "root_path")
CERTIFICATES = tuple((f"{each}_SSL_CERT", f"{each}_SSL_KEY") for each in ("RELAY", "API_SERVER", "SVC_DASHBOARD"))
PATH_LISTS = ("RELAY_MEDIA_ALLOWED_ROOTS",)
DAY = 86_400.0  # s
STEPS = 4  # messages of a handshake in each direction, at most


def collect_host_report(home: str, ports: Sequence[tuple[str, int]] = ()) -> dict[str, object]:
    """Return the observations of this host as plain values, by the names of `HostFacts` where these exist.

    `ports` are the configured ones, by role.
    """
    folder, env = Path(home).expanduser().absolute(), dict(os.environ)
    file, env_problem = _env_file(folder)
    settings = merge_env_file(env, file)
    config = _config_path(settings, folder)
    return {
        "servers": [_server(one) for one in find_running_servers(folder)],
        "busy_ports": [port for _, port in ports if _is_busy(port)],
        "home": str(folder),
        "disk_free": _disk_free(folder),
        "home_problem": _home_problem(folder),
        "open_files": _open_files(folder),
        **_database(env, settings, folder),
        "newest_file_at": _newest(folder),
        "home_since": _oldest(folder),
        "backup_at": _time_of(folder / RUN / LAST_BACKUP),
        "env_problem": env_problem,
        "unknown_variables": [
            unknown_variable_text(sanitize_line(name), near)
            for name, near in find_unknown_variables({**file, **env}).items()
        ],
        "config_problems": [
            f"{config}{'' if line is None else f' line {line}'}: {text}" for line, text in find_config_problems(config)
        ],
        "certificates": [
            inspect_certificate(settings[cert], settings[key])
            for cert, key in CERTIFICATES
            if settings.get(cert) and settings.get(key)
        ],
        "missing_paths": _missing_paths(settings),
        "is_container": any(os.path.exists(mark) for mark in CONTAINER_MARKS),
        "settings": settings,
        "model": model_settings(settings, folder, model_url_source(env)),
    }


def record_backup(home: Path) -> None:
    """Record a backup that was made now, as the modification time of a file in the home, if that can be written."""
    with suppress(OSError):
        (home / RUN).mkdir(mode=0o700, exist_ok=True)
        (home / RUN / LAST_BACKUP).touch(0o600)


def model_settings(settings: Mapping[str, str], home: Path, url_source: str = MODEL_URL) -> dict[str, object]:
    """Return address, name, key, context and source of the model as an API server would use them.

    Empty if the settings are invalid. `url_source` is the place of the variable with the address.
    """
    try:
        config = parse_api_config({**settings, "API_SERVER_KEY": ""}, {}, home=str(home))
    except ConfigError:
        return {}
    found: Mapping[str, object] = {}
    with suppress(OSError, UnicodeDecodeError, HostError):  # a missing or broken file has no settings
        found = load_yaml(Path(config.config_path).expanduser().read_text("utf-8"))
    built = build_agent_settings(evolve(config, model_base_url_source=url_source), found)
    endpoint = built.endpoint
    return {
        "base_url": built.base_url,
        "name": built.model,
        "key": "" if endpoint is None else endpoint.api_key,
        "context": None if endpoint is None else endpoint.context,
        "source": "" if endpoint is None else endpoint.source,
    }


def inspect_certificate(certificate: str, key: str) -> dict[str, object]:
    """Return path, problem, days until the end of validity, and names of a certificate and its key.

    A handshake in memory shows these.
    An expired one has `days_left` -1, one with a problem 365; both have no names.
    """
    row: dict[str, object] = {"path": certificate, "problem": "", "days_left": 365.0, "names": []}
    try:
        found = _peer_certificate(certificate, key)
    except ssl.SSLCertVerificationError as error:
        if "expired" in error.verify_message:
            return {**row, "days_left": -1.0}
        return {**row, "problem": error.verify_message}
    except (TlsFileError, ssl.SSLError, OSError) as error:
        return {**row, "problem": str(error)}
    ends = ssl.cert_time_to_seconds(str(found["notAfter"])) if "notAfter" in found else time.time() + 365 * DAY
    names = [str(value) for kind, value in _pairs(found.get("subjectAltName")) if kind in ("DNS", "IP Address")]
    return {**row, "days_left": (ends - time.time()) / DAY, "names": names}


def _env_file(folder: Path) -> tuple[dict[str, str], str]:
    try:
        return read_env_file(folder / ENV_FILE), ""
    except EnvFileError as error:
        return {}, str(error)


def _config_path(settings: Mapping[str, str], folder: Path) -> str:
    named = settings.get("SVC_CONFIG") or settings.get("RELAY_HERMES_CONFIG")
    return named or str(folder / "config.yaml")


def _server(one: object) -> dict[str, object]:
    return {name: getattr(one, name) for name in SERVER_MEMBERS}


def _is_busy(port: int) -> bool:
    """Report whether a program accepts connections at a port of 127.0.0.1."""
    with socket.socket() as sock:
        sock.settimeout(CONNECT_TIMEOUT)
        return sock.connect_ex(("127.0.0.1", port)) == 0


def _disk_free(folder: Path) -> int | None:
    try:
        return shutil.disk_usage(_existing(folder)).free
    except OSError:
        return None


def _existing(folder: Path) -> Path:
    return next(path for path in (folder, *folder.parents) if path.exists())


def _home_problem(folder: Path) -> str:
    """Return why the home cannot be written; empty if it can, or does not exist yet."""
    if not folder.exists():
        return ""
    probe = folder / f".svc-doctor-{os.getpid()}"
    try:
        probe.write_bytes(b"x" * 4096)
    except OSError as error:
        return (error.strerror or type(error).__name__).lower()
    finally:
        with suppress(OSError):
            probe.unlink()
    return ""


def _open_files(folder: Path) -> list[str]:
    found = [name for name in SECRET_FILES if _mode(folder / name) & 0o077]
    return found if _mode(folder) & 0o011 or not folder.exists() else []


def _mode(path: Path) -> int:
    try:
        return stat.S_IMODE(path.stat().st_mode)
    except OSError:
        return 0


def _database(env: Mapping[str, str], settings: Mapping[str, str], folder: Path) -> dict[str, object]:
    try:
        named = configured_store(env, settings, folder)
    except StoreError as error:
        return {"database": "the database", "database_problem": str(error)}
    if isinstance(named, Path):
        return {"database": str(named), "database_problem": _sqlite_problem(named)}
    files = store_files(named)
    if files:
        return {"database": files[0], "database_problem": _sqlite_problem(Path(files[0]))}
    if "://" not in named:
        return {"database": "", "database_problem": ""}
    return {"database": named.partition("://")[0], "database_problem": _server_problem(named)}


def _sqlite_problem(path: Path) -> str:
    if not path.exists():
        return ""
    try:
        with closing(sqlite3.connect(f"file:{quote(str(path))}?mode=ro", uri=True, timeout=LOCK_TIMEOUT)) as connection:
            answer = connection.execute("PRAGMA quick_check(1)").fetchone()[0]
            connection.execute("SELECT component, version FROM schema_version").fetchall()
    except sqlite3.Error as error:
        return str(error)
    return "" if answer == "ok" else str(answer)


def _server_problem(url: str) -> str:
    """Return why a database server cannot be reached, empty if it can; only a connection to its port is tried."""
    from urllib.parse import urlsplit  # noqa: PLC0415, RUF100 - few services have one

    parts = urlsplit(url)
    if not parts.hostname:
        return ""
    try:
        socket.create_connection((parts.hostname, parts.port or 5432), CONNECT_TIMEOUT).close()
    except OSError as error:
        return f"{parts.hostname} cannot be reached: {(error.strerror or str(error)).lower()}"
    return ""


def _newest(folder: Path) -> float | None:
    times = [_time_of(path) for path in (*folder.glob("*"), *folder.glob("log/*"))] if folder.exists() else []
    return max((each for each in times if each is not None), default=None)


def _oldest(folder: Path) -> float | None:
    times = [_time_of(path) for path in folder.glob("*")] if folder.exists() else []
    return min((each for each in times if each is not None and each <= time.time()), default=None)


def _time_of(path: Path) -> float | None:
    try:
        return path.stat().st_mtime
    except OSError:
        return None


def _missing_paths(settings: Mapping[str, str]) -> list[str]:
    rows = [(name, path) for name in PATHS if (path := settings.get(name, "").strip())]
    rows += [
        (name, path.strip()) for name in PATH_LISTS for path in settings.get(name, "").split(os.pathsep) if path.strip()
    ]
    return [f"{name}={sanitize_line(path)}" for name, path in rows if not Path(path).expanduser().exists()]


def _pairs(value: object) -> list[tuple[object, object]]:
    rows = value if isinstance(value, tuple) else ()
    return [(row[0], row[1]) for row in rows if isinstance(row, tuple) and len(row) == 2]


def _peer_certificate(certificate: str, key: str) -> Mapping[str, object]:
    server, client = server_context(certificate, key), context_for_certificates(certificate)
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    there = server.wrap_bio(to_server, to_client, server_side=True)
    here = client.wrap_bio(to_client, to_server)
    for _ in range(STEPS):
        for side in (here, there):
            with suppress(ssl.SSLWantReadError):
                side.do_handshake()
    return here.getpeercert() or {}
