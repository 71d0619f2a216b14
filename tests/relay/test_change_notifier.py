from __future__ import annotations

from svc_proto.relay.change_notifier import DEVICES, NOTIFICATIONS, Changes


def test_who_watches_is_told_until_he_has_enough() -> None:
    changes, told = Changes(), list[str]()

    def once() -> None:
        told.append("first")
        leave()

    leave = changes.watch(DEVICES, once)
    changes.watch(DEVICES, lambda: told.append("second"))
    changes.tell(NOTIFICATIONS)
    assert told == []
    changes.tell(DEVICES)
    changes.tell(DEVICES)
    assert told == ["first", "second", "second"]
