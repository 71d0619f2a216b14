"""Which files of the host a phone may fetch: decided on the real path of what was opened (wire core 6.4).

The protected list is judged first, then the roots, so that a refusal does not tell whether a file exists.
Paths are absolute POSIX paths; containment is by component.
"""

from __future__ import annotations

from collections.abc import Iterable

from attrs import field, frozen

__all__ = ["CREDENTIAL_FOLDERS", "SYSTEM_TREES", "Sandbox", "is_within", "normal_path"]

SYSTEM_TREES = ("/etc", "/proc", "/sys", "/dev", "/root", "/boot", "/var/log", "/var/lib", "/var/run", "/run")
CREDENTIAL_FOLDERS = (".ssh", ".aws", ".gnupg", ".kube", ".docker", ".config", ".azure", ".gcloud")
SERVICE_SECRETS = (
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
)


def normal_path(path: str) -> str:
    """An absolute path without empty, `.` and `..` components. Symbolic links are not resolved here."""
    parts: list[str] = []
    for part in path.split("/"):
        if part == "..":
            del parts[-1:]
        elif part not in ("", "."):
            parts.append(part)
    return "/" + "/".join(parts)


def _normal_paths(paths: Iterable[str]) -> tuple[str, ...]:
    return tuple(map(normal_path, paths))


@frozen(kw_only=True)
class Sandbox:
    """The roots under which files may be fetched, and what is protected even there."""

    roots: tuple[str, ...] = field(converter=_normal_paths)
    home: str  # of the user that the relay runs as
    service_home: str
    protected: tuple[str, ...] = field(init=False)

    @protected.default
    def _protected(self) -> tuple[str, ...]:
        home = normal_path(self.home)
        # A system tree that is the user's own home (root's /root) is not foreign; its credential folders still are.
        trees = [tree for tree in SYSTEM_TREES if tree != home]
        trees += [f"{home}/{folder}" for folder in CREDENTIAL_FOLDERS]
        trees += [f"{normal_path(self.service_home)}/{name}" for name in SERVICE_SECRETS]
        return _normal_paths(trees)

    def allows(self, path: str) -> bool:
        """Whether a file at this real path may be served."""
        where = normal_path(path)
        return not is_within(where, self.protected) and is_within(where, self.roots)


def is_within(path: str, trees: Iterable[str]) -> bool:
    """Whether a path is one of the trees or lies in one; all in `normal_path` form."""
    return any(path == tree or path.startswith(tree if tree == "/" else f"{tree}/") for tree in trees)
