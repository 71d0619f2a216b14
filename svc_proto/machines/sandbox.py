"""Files of the host that a phone may fetch, decided by the real path of the opened file (wire core 6.4).

A file is served if it is within a root, and protected neither by its path nor by a part that begins as in
`TEMPORARY_CREDENTIALS`. The service home is protected as a whole, under any root: keys, tokens, their backups, and
files of later versions. Excepted are roots within it, and `SHARED_FOLDERS`. Paths are absolute POSIX paths; containment
is by component. They are compared with real paths, so roots and protected paths must be real, too: a home behind a link
is the same home.
"""

from collections.abc import Iterable

from attrs import field, frozen

__all__ = ["CREDENTIAL_FOLDERS", "SYSTEM_TREES", "Sandbox", "is_within", "normal_path", "protected_paths"]

SYSTEM_TREES = ("/etc", "/proc", "/sys", "/dev", "/root", "/boot", "/var/log", "/var/lib", "/var/run", "/run")
CREDENTIAL_FOLDERS = (".ssh", ".aws", ".gnupg", ".kube", ".docker", ".config", ".azure", ".gcloud")
CREDENTIAL_FILES = (".env", ".netrc", ".git-credentials", ".npmrc", ".pypirc", ".pgpass", ".my.cnf")
PRIVATE_PATHS = (
    ".mozilla",
    ".thunderbird",
    ".password-store",
    ".local/share/keyrings",
    ".bash_history",
    ".zsh_history",
)
# Starts of names of credentials in the temporary folder: Kerberos, grid proxies, X11, secrets that kubectl edits.
TEMPORARY_CREDENTIALS = ("krb5cc", "x509up_u", "xauth_", ".Xauthority", "kubectl-edit-")
SHARED_FOLDERS = ("images",)  # of the service home, when a root contains the home
# Protected names in the service home, for a root that is within the home.
SERVICE_FILES = (
    ".env",
    "config.yaml",
    "auth.json",
    "agent-relay.json",
    "svc.db",
    "svc.db-wal",
    "svc.db-shm",
    "svc-relay-qr-secret",
    "hermes-relay-qr-secret",
    "local-secret",
    "svc-relay-sessions.json",
    "remote-sessions.json",
    "pairing",
    "mcp-tokens",
    "profiles",
    "agent-approvals.json",
    "model-profiles.json",
    "health.json",
    "dashboard-sessions.json",
    "responses.json",
    "memories",
    "spool",
    "images/inbox",
    "public-route",
    "run",
    "log",
)


def normal_path(path: str) -> str:
    """Return an absolute path without empty, `.` and `..` components. Symbolic links are not resolved."""
    parts: list[str] = []
    for part in path.split("/"):
        if part == "..":
            del parts[-1:]
        elif part not in ("", "."):
            parts.append(part)
    return "/" + "/".join(parts)


def protected_paths(*, home: str, service_home: str, ours: Iterable[str]) -> tuple[str, ...]:
    """Return the protected paths: of the system, of the user's `home`, of the relay in `service_home`, and `ours`."""
    home = normal_path(home)
    # A system tree that is the user's own home (root's /root) is permitted; its credential folders are not.
    trees = [tree for tree in SYSTEM_TREES if tree != home]
    trees += [f"{home}/{name}" for name in (*CREDENTIAL_FOLDERS, *CREDENTIAL_FILES, *PRIVATE_PATHS)]
    trees += [f"{service_home}/{name}" for name in SERVICE_FILES]
    return _normal_paths((*trees, *ours))


def _normal_paths(paths: Iterable[str]) -> tuple[str, ...]:
    return tuple(map(normal_path, paths))


@frozen(kw_only=True)
class Sandbox:
    """Roots under which files may be fetched, and protected paths within them."""

    roots: tuple[str, ...] = field(converter=_normal_paths)
    protected: tuple[str, ...] = field(converter=_normal_paths)
    homes: tuple[str, ...] = field(converter=_normal_paths, default=())  # the service home, by each of its names
    _given: tuple[str, ...] = field(init=False)

    @_given.default
    def _of_the_homes(self) -> tuple[str, ...]:
        inside = (root for root in self.roots if root not in self.homes and is_within(root, self.homes))
        return (*inside, *(f"{home}/{name}" for home in self.homes for name in SHARED_FOLDERS))

    def allows(self, path: str) -> bool:
        """Report whether a file at this real path may be served."""
        where = normal_path(path)
        if is_within(where, self.protected) or not is_within(where, self.roots):
            return False
        if any(part.startswith(TEMPORARY_CREDENTIALS) for part in where.split("/")):
            return False
        return not is_within(where, self.homes) or is_within(where, self._given)


def is_within(path: str, trees: Iterable[str]) -> bool:
    """Report whether a path is one of the trees or within one; all in `normal_path` form."""
    return any(path == tree or path.startswith(tree if tree == "/" else f"{tree}/") for tree in trees)
