"""Index of paired sessions by the beginning of their tokens, by device, and by API key.

Each name leads to a group of sessions that share some of its characters. Such groups take less memory than a dictionary
of all names.
"""

from bisect import bisect_left

from svc_proto.machines.paired_session import NO_DEVICE_ID, PairedSession

__all__ = ["SessionIndex"]


class SessionIndex:
    """Index of sessions by token prefix, device id and the hash of their API key."""

    def __init__(self) -> None:
        self._groups: dict[str, list[PairedSession]] = {}
        self._names: list[str] = []  # of the groups, sorted; empty after a change
        self._devices: dict[str, list[PairedSession]] = {}
        self._keys: dict[str, list[PairedSession]] = {}

    def add(self, session: PairedSession) -> None:
        """Add a session that the index does not contain."""
        name = _group(session.token_prefix)
        if name not in self._groups:
            self._groups[name] = []
            self._names.clear()
        self._groups[name].append(session)
        if _is_named(session.device_id):
            self._devices.setdefault(_device_group(session.device_id), []).append(session)
        if session.key_hash:
            self._keys.setdefault(_group(session.key_hash), []).append(session)

    def remove(self, session: PairedSession) -> None:
        """Remove a session from the index, if it is there."""
        _drop(self._groups, _group(session.token_prefix), session)
        if _group(session.token_prefix) not in self._groups:
            self._names.clear()
        if _is_named(session.device_id):
            _drop(self._devices, _device_group(session.device_id), session)
        _drop(self._keys, _group(session.key_hash), session)

    def find(self, prefix: str) -> list[PairedSession]:
        """Return the sessions whose token prefixes begin with `prefix`, of at least three characters."""
        return [each for each in self._groups.get(_group(prefix), ()) if each.token_prefix.startswith(prefix)]

    def of_device(self, device_id: str) -> list[PairedSession]:
        """Return the sessions of a device, oldest first; none for an id in `NO_DEVICE_ID`, such as `unknown`."""
        found = [each for each in self._devices.get(_device_group(device_id), ()) if each.device_id == device_id]
        return sorted(found, key=lambda session: session.created_at)

    def find_by_key(self, key_hash: str) -> PairedSession | None:
        """Return the session whose own key has this hash; of several, the one added last."""
        group = self._keys.get(_group(key_hash), ())
        return next((each for each in reversed(group) if each.key_hash == key_hash), None)

    def page(self, after: str, limit: int) -> tuple[list[PairedSession], str]:
        """Return the next `limit` sessions by token, and the cursor for the following page; empty on the last one.

        `after` is the cursor of the page before, empty for the first one. A session that stays in the index while the
        pages are read is in exactly one of them.
        """
        found: list[tuple[str, PairedSession]] = []
        names = self._names = self._names or sorted(self._groups)
        for name in names[bisect_left(names, _group(after)) :]:
            group = [(_position(each), each) for each in self._groups[name]]
            found += sorted((entry for entry in group if entry[0] > after), key=_first)
            if len(found) > limit:
                return [session for _, session in found[:limit]], found[limit - 1][0]
        return [session for _, session in found], ""


def _group(prefix: str) -> str:
    return prefix[:3]  # hexadecimal characters; fewer than a prefix that a client may name


def _device_group(device_id: str) -> str:
    return device_id[-3:]  # the first ones may be the same for all devices


def _is_named(device_id: str) -> bool:
    return device_id.strip().lower() not in NO_DEVICE_ID


def _position(session: PairedSession) -> str:
    """Return the place of a session in the order of pages; it has only a part of the token's hash."""
    return f"{session.token_prefix}.{session.token_hash[:16]}"  # prefixes may be equal


def _first(entry: tuple[str, PairedSession]) -> str:
    return entry[0]


def _drop(groups: dict[str, list[PairedSession]], name: str, session: PairedSession) -> None:
    left = [each for each in groups.get(name, ()) if each is not session]
    if left:
        groups[name] = left
    else:
        groups.pop(name, None)
