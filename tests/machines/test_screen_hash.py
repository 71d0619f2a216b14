from svc_proto.machines.screen_hash import screen_hash


def test_the_check_value_of_the_hash() -> None:
    button = ("android.widget.Button", "Send", "", (40, 2210, 1040, 2330), "com.example:id/send")
    title = ("android.widget.TextView", "Inbox", "", (0, 120, 1080, 220), "")
    expected = "7d6176bc476365c716e2a286d1d0a297af5af420711bf1b5bb0db0792b944edd"
    assert screen_hash([button, title]) == expected
    assert screen_hash([title, button]) != expected
