import pytest

from svc_proto.service_clients.mcp_read_quota import MAX_BYTES, MAX_MESSAGES, ReadQuota
from tests.engine.toy_service import open_book


@pytest.mark.parametrize(("messages", "size"), [(MAX_MESSAGES, 0), (0, MAX_BYTES)])
def test_quota_is_refilled_each_second(messages: int, size: int) -> None:
    book = open_book()
    held: list[bool] = []
    quota = ReadQuota(book.engine, held.append)
    book.act(lambda: quota.count(messages, size)).drain_commands()
    assert held == []
    book.act(lambda: quota.count(bool(messages), bool(size))).drain_commands()
    book.act(lambda: quota.count(bool(messages), bool(size))).drain_commands()
    assert held == [True]
    book.after(0.75).drain_commands()
    assert held == [True]
    book.after(0.25).drain_commands()
    assert held == [True, False]
    book.act(lambda: quota.count(messages, size)).drain_commands()
    assert held == [True, False]
    book.act(lambda: quota.count(1, 1)).drain_commands()
    book.act(quota.close).drain_commands()
    book.after(5.0).drain_commands()
    assert held == [True, False, True]
