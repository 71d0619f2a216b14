"""Bytes that the load generator writes and reads."""

from __future__ import annotations

import json

import pytest

from bench.wire import PING, TEXT, FrameReader, frame, phone_answer, request
from svc_proto.wire.connection import Role
from svc_proto.wire.events import StreamId, TextMessage
from svc_proto.wire.websocket import WebSocket

SIZES = (0, 125, 126, 70_000)


@pytest.mark.parametrize("size", SIZES[:3])
def test_a_server_reads_our_frames(size: int) -> None:
    server = WebSocket(Role.SERVER, StreamId(1), entropy=bytes)
    server.receive_data(frame(b"x" * size))
    assert server.next_event() == TextMessage(StreamId(1), "x" * size)


@pytest.mark.parametrize("step", [1, 7, 100_000])
def test_we_read_a_servers_frames_however_they_are_cut(step: int) -> None:
    server = WebSocket(Role.SERVER, StreamId(1), entropy=bytes)
    for size in SIZES:
        server.send(TextMessage(StreamId(1), "y" * size))
    data, reader = server.data_to_send(), FrameReader()
    found = [one for at in range(0, len(data), step) for one in reader.feed(data[at : at + step])]
    assert [(opcode, len(payload)) for opcode, payload in found] == [(TEXT, size) for size in SIZES]


def test_a_phones_answer_names_its_request() -> None:
    server = WebSocket(Role.SERVER, StreamId(1), entropy=bytes)
    server.receive_data(phone_answer("id-1"))
    event = server.next_event()
    assert isinstance(event, TextMessage)
    assert json.loads(event.text)["payload"]["request_id"] == "id-1"


def test_a_request_with_a_body_has_its_length() -> None:
    assert request("POST", "/tap", token="t", body=b"{}").endswith(b"Content-Length: 2\r\n\r\n{}")
    assert b"Content-Length" not in request("GET", "/health")
    assert frame(b"", PING)[0] == 0x89
