"""Installation and removal of the service: writes files for systemd or launchd, and calls systemctl or launchctl."""

import os
import pwd
import re
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from shutil import which

from clients.commands.cli import error_reason
from clients.commands.service_units import LABEL, MARK, UNIT, UnitSpec, launchd_agent, systemd_service, systemd_socket
from runtimes.service_home.home import ENV_FILE, service_home_path
from runtimes.service_home.log_file import LOG_FOLDER
from svc_proto.cli.errors import USAGE_ERROR, CliError

__all__ = ["install", "remove"]

ROLES = ("relay", "api", "dashboard")
OURS = ("RELAY_", "SVC_", "API_SERVER_")
COMMAND_TIMEOUT = 60.0  # s for a command of systemd or launchd


def install(
    options: Sequence[str],
    *,
    system: bool,
    user: str | None,
    hardened: bool,
    listen: Sequence[str],
    now: bool,
    show: bool,
) -> None:
    """Install the service, or with `show` only print its files.

    Raises `CliError`; the files are then as they were before.
    """
    if user is not None and not system:
        raise CliError("--user goes with --system: without it they run as you", code=USAGE_ERROR)
    account = _account(user) if system else None
    home = service_home_path(os.environ) if account is None else _home_of(account)
    wanted = UnitSpec(
        command=[sys.executable, "-P", "-m", "servers", "--no-qr", *options],
        environment={"SVC_HOME": str(home), "PATH": os.environ.get("PATH", os.defpath)},
        home=home,
        user=None if account is None else account.pw_name,
        hardened=hardened,
        sockets=dict(_socket(text) for text in listen),
    )
    _check_options(wanted.command)
    files = _launchd(wanted) if sys.platform == "darwin" else _systemd(wanted)
    if show:
        for path, text in files.items():
            print(f"# {path}\n{text.decode()}")
        return
    for path in files:
        if path.exists() and not _is_ours(path):
            raise CliError(f"{path} is there already, and not of ours")
    _check_units(files)
    before = {path: path.read_bytes() for path in files if path.exists()}
    try:
        _make_home(home, account)
        for path, text in files.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(text)
        _enable(files, system=system, now=now)
    except (OSError, CliError) as error:
        _put_back(files, before)
        raise error if isinstance(error, CliError) else CliError(_why(error)) from None
    print(f"Installed: {', '.join(str(path) for path in files)}")
    print(f"Settings: {home / ENV_FILE}" + ("" if now else "; nothing runs yet"))
    for name in sorted(name for name in os.environ if name.startswith(OURS) and name != "SVC_HOME"):
        print(f"Not taken over from this shell: {name}")
    if account is None and sys.platform != "darwin":
        user = pwd.getpwuid(os.getuid()).pw_name
        print(f"They run while you are signed in; from the start of the host on: loginctl enable-linger {user}")


def remove(*, system: bool) -> None:
    """Disable the service, which stops the servers, and delete its files, or print that there are none.

    Raises `CliError` if a file cannot be read or deleted.
    """
    folder = _folder(system=system)
    names = [f"{LABEL}.plist"] if sys.platform == "darwin" else [f"{UNIT}{end}" for end in _UNITS]
    files = [folder / name for name in names if (folder / name).exists() and _is_ours(folder / name)]
    if not files:
        print(f"Nothing of ours is in {folder}.")
        return
    if sys.platform == "darwin":
        _call("launchctl", "bootout", f"gui/{os.getuid()}", str(files[0]), must=False)
    else:
        _call(*_systemctl(system=system), "disable", "--now", *(path.name for path in files), must=False)
    try:
        for path in files:
            path.unlink()
    except OSError as error:
        raise CliError(_why(error)) from None
    if sys.platform != "darwin":
        _call(*_systemctl(system=system), "daemon-reload", must=False)
    print(f"Removed: {', '.join(str(path) for path in files)}")


# --- files --------------------------------------------------------------------------------------------------------

_UNITS = (".service", *(f"-{role}.socket" for role in ROLES))


def _systemd(wanted: UnitSpec) -> dict[Path, bytes]:
    folder = _folder(system=wanted.user is not None)
    files = {folder / f"{UNIT}.service": systemd_service(wanted)}
    files |= {folder / f"{UNIT}-{role}.socket": systemd_socket(role, where) for role, where in wanted.sockets.items()}
    return {path: text.encode() for path, text in files.items()}


def _launchd(wanted: UnitSpec) -> dict[Path, bytes]:
    if wanted.user is not None or wanted.sockets or wanted.hardened:
        raise CliError("--system, --listen and --hardened are for systemd", code=USAGE_ERROR)
    log = wanted.home / LOG_FOLDER / "launchd.log"
    return {_folder(system=False) / f"{LABEL}.plist": launchd_agent(wanted, log)}


def _folder(*, system: bool) -> Path:
    if sys.platform == "darwin":
        return Path("~/Library/LaunchAgents").expanduser()
    if system:
        return Path("/etc/systemd/system")
    return Path(os.environ.get("XDG_CONFIG_HOME") or Path("~/.config").expanduser()) / "systemd" / "user"


def _is_ours(path: Path) -> bool:
    try:
        text = path.read_bytes()
    except OSError as error:
        raise CliError(_why(error)) from None
    return MARK.encode() in text or LABEL.encode() in text


def _put_back(files: Mapping[Path, bytes], before: Mapping[Path, bytes]) -> None:
    for path in files:
        if path in before:
            path.write_bytes(before[path])
        else:
            path.unlink(missing_ok=True)


def _check_units(files: Mapping[Path, bytes]) -> None:
    """Verify the files with `systemd-analyze`, if installed.

    If it fails, raises `CliError` with the first line about these files; without such a line, nothing is raised. Raises
    `CliError` also if it does not end in time.
    """
    tool = which("systemd-analyze")
    if tool is None:
        return
    with tempfile.TemporaryDirectory() as folder:
        for path, text in files.items():
            (Path(folder) / path.name).write_bytes(text)
        names = [str(Path(folder) / path.name) for path in files]
        said = _run(tool, "verify", "--man=no", *names, name="systemd-analyze verify")
    if said.returncode and folder in said.stderr:
        line = next(line for line in said.stderr.splitlines() if folder in line)
        raise CliError(f"systemd does not take it: {line.replace(f'{folder}/', '')}")


# --- settings -----------------------------------------------------------------------------------------------------


def _account(name: str | None) -> pwd.struct_passwd:
    name = name or os.environ.get("SUDO_USER")
    if name is None:
        raise CliError("whose shells are phones to get? --user NAME", code=USAGE_ERROR)
    try:
        return pwd.getpwnam(name)
    except KeyError:
        raise CliError(f"there is no user {name!r}", code=USAGE_ERROR) from None


def _home_of(account: pwd.struct_passwd) -> Path:
    return Path(os.environ.get("SVC_HOME", "").strip() or Path(account.pw_dir) / ".svc").absolute()


def _make_home(home: Path, account: pwd.struct_passwd | None) -> None:
    if not home.is_dir():
        home.mkdir(mode=0o700, parents=True)
        if account is not None:
            os.chown(home, account.pw_uid, account.pw_gid)


def _socket(text: str) -> tuple[str, str]:
    found = re.fullmatch(rf"({'|'.join(ROLES)})=((?:[0-9.]+|\[[0-9A-Fa-f:.]+\]):)?([0-9]{{1,5}})", text)
    if found is None or not 0 < int(found[3]) <= 65_535:
        raise CliError(f"--listen {text!r}: it is {', '.join(ROLES)} = [address:]port", code=USAGE_ERROR)
    return found[1], f"{found[2] or ''}{found[3]}"


def _check_options(command: Sequence[str]) -> None:
    """Run the command with `--help`, which fails for unknown options. Raises `CliError` with its error text."""
    said = _run(*command, "--help", name="svc up --help")
    if said.returncode:
        raise CliError(said.stderr.strip().removeprefix("error: ") or "svc up does not start", code=USAGE_ERROR)


# --- the supervisor -----------------------------------------------------------------------------------------------


def _enable(files: Mapping[Path, bytes], *, system: bool, now: bool) -> None:
    if sys.platform == "darwin":
        (path,) = files
        if now:
            _call("launchctl", "bootstrap", f"gui/{os.getuid()}", str(path))
        return
    control = _systemctl(system=system)
    _call(*control, "daemon-reload")
    _call(*control, "enable", *(["--now"] if now else []), *(path.name for path in files))


def _systemctl(*, system: bool) -> tuple[str, ...]:
    return ("systemctl",) if system else ("systemctl", "--user")


def _call(*words: str, must: bool = True) -> None:
    name = " ".join(words[:3])
    try:
        said = _run(*words, name=name)
        if said.returncode:
            raise CliError(f"{name} failed: {' '.join(said.stderr.split()) or f'exit code {said.returncode}'}")
    except CliError:
        if must:
            raise


def _run(*words: str, name: str) -> subprocess.CompletedProcess[str]:
    """Run a command to its end. Raises `CliError` if it does not start, or does not end within `COMMAND_TIMEOUT`."""
    try:
        return subprocess.run(words, capture_output=True, text=True, check=False, timeout=COMMAND_TIMEOUT)
    except OSError as error:
        raise CliError(f"{name} failed: {_why(error)}") from None
    except subprocess.TimeoutExpired:
        raise CliError(f"{name} failed: no answer in time") from None


def _why(error: OSError) -> str:
    where = "" if error.filename is None else f" ({error.filename})"
    return f"{error_reason(error)}{where}"
