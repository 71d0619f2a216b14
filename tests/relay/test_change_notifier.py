from svc_proto.relay.change_notifier import DEVICES, NOTIFICATIONS, ChangeNotifier


def test_subscriber_is_notified_until_it_unsubscribes() -> None:
    changes, told = ChangeNotifier(), list[str]()

    def once() -> None:
        told.append("first")
        leave()

    leave = changes.subscribe(DEVICES, once)
    changes.subscribe(DEVICES, lambda: told.append("second"))
    changes.notify(NOTIFICATIONS)
    assert told == []
    changes.notify(DEVICES)
    changes.notify(DEVICES)
    assert told == ["first", "second", "second"]
