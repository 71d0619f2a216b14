from __future__ import annotations

import pytest

from svc_proto.service_clients.mcp_read_quota import MAX_BYTES, MAX_MESSAGES, ReadQuota
from tests.engine.toy_service import open_book


@pytest.mark.parametrize(("messages", "size"), [(MAX_MESSAGES, 0), (0, MAX_BYTES)])
def test_a_second_of_a_server(messages: int, size: int) -> None:
    book = open_book()
    held: list[bool] = []
    quota = ReadQuota(book.engine, held.append)
    book.act(lambda: quota.count(messages, size)).take()
    assert held == []
    book.act(lambda: quota.count(bool(messages), bool(size))).take()
    book.act(lambda: quota.count(bool(messages), bool(size))).take()
    assert held == [True]
    book.after(0.9).take()
    assert held == [True]
    book.after(0.2).take()
    assert held == [True, False]
    book.act(lambda: quota.count(messages, size)).take()
    assert held == [True, False]
    book.act(lambda: quota.count(1, 1)).take()
    book.act(quota.close).take()
    book.after(5.0).take()
    assert held == [True, False, True]
