"""Settings that a connection announces, and the `Content-Length` that is hidden from h2."""

import pytest
from h2.events import RemoteSettingsChanged
from h2.settings import SettingCodes
from hpack import Encoder

from svc_proto.wire.h2_optimized import HIDDEN_LENGTH
from svc_proto.wire.http2_settings import CONNECTION_WINDOW, MAX_STREAMS, STREAM_WINDOW, new_h2
from svc_proto.wire.limits import Limits


@pytest.mark.parametrize("client", [True, False])
def test_announced_settings(client: bool) -> None:
    ours = new_h2(client=client, limits=Limits(max_head=5000))
    theirs = new_h2(client=not client, limits=Limits())
    said = ours.data_to_send()
    events = theirs.receive_data(said.removeprefix(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"))
    (changed,) = [event for event in events if isinstance(event, RemoteSettingsChanged)]
    announced = {code: setting.new_value for code, setting in changed.changed_settings.items()}
    assert announced[SettingCodes.MAX_CONCURRENT_STREAMS] == MAX_STREAMS
    assert announced[SettingCodes.MAX_HEADER_LIST_SIZE] == 5000
    assert announced[SettingCodes.INITIAL_WINDOW_SIZE] == STREAM_WINDOW
    assert announced[SettingCodes.ENABLE_PUSH] == 0 or not client
    assert bool(announced.get(SettingCodes.ENABLE_CONNECT_PROTOCOL)) is not client
    assert theirs.outbound_flow_control_window == CONNECTION_WINDOW
    assert ours.decoder.max_header_list_size == 10_000


def test_content_length_is_hidden_from_h2() -> None:
    h2 = new_h2(client=False, limits=Limits())
    fields = [(b"a", b"b"), (b"content-length", b"5"), (HIDDEN_LENGTH, b"6")]
    seen = list(h2.decoder.decode(Encoder().encode(fields), raw=True))
    assert seen == [(b"a", b"b"), (HIDDEN_LENGTH, b"5"), (b"", b"6")]
