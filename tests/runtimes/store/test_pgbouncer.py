"""Tests of the store behind a real PgBouncer in transaction mode, with the parameters of docs/howto/postgresql.md."""

import os
import shutil
import subprocess
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from runtimes.store.store_factory import open_store
from svc_proto.api.chat.store_requests import GetChat, ListMessages, SearchMessages
from svc_proto.store_requests import CheckStore, LoadSessions, SaveSession
from tests.runtimes.store.chat_stores import add, chat, create, execute, message
from tests.runtimes.store.postgresql_server import OTHERS, needs_postgresql, server
from tests.support.ports import free_port

PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
PROGRAM = shutil.which("pgbouncer", path=PATH)
pytestmark = [needs_postgresql, pytest.mark.needs("PgBouncer", PROGRAM is None)]
SETTINGS = """
[databases]
* = host={server} user=svc
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {port}
unix_socket_dir =
auth_type = any
pool_mode = transaction
default_pool_size = 2
server_reset_query_always = 0
"""


@pytest.fixture
def address(tmp_path: Path) -> Iterator[str]:
    """Run PgBouncer; yield the URL of a new database behind it, without the parameter `pgbouncer`."""
    database = server().fresh().removeprefix("postgresql://svc@/").partition("?")[0]
    port, file = free_port(), server().folder / "pgbouncer.ini"  # root's own folder is closed to the other account
    file.write_text(SETTINGS.format(server=server().folder, port=port))
    user = OTHERS if os.geteuid() == 0 else None
    with subprocess.Popen(
        [str(PROGRAM), str(file)], stderr=subprocess.PIPE, text=True, user=user, cwd=server().folder
    ) as bouncer:
        try:
            assert bouncer.stderr is not None
            assert any("process up" in line for line in bouncer.stderr)
            yield f"postgresql://svc@127.0.0.1:{port}/{database}"
        finally:
            bouncer.kill()


def test_store_works_in_transaction_mode(address: str) -> None:
    with closing(open_store(f"{address}?pgbouncer=true")) as store:
        create(store, chat())
        for number in range(20):  # psycopg prepares a statement that it has sent five times
            add(store, message(f"m{number}", f"word{number} hello"))
            assert execute(store, GetChat(id="c")) is not None
        assert len(execute(store, ListMessages(session_id="c")) or ()) == 20
        assert len(execute(store, SearchMessages(query="word7", limit=5, offset=0))) == 1
        store.execute(CheckStore())


def test_connections_share_servers_in_transaction_mode(address: str) -> None:
    """Two stores, used by six threads, save all records through PgBouncer's few connections."""
    stores = [open_store(f"{address}?pgbouncer=true") for _ in range(2)]
    failures: list[BaseException] = []

    def save(name: str, place: int) -> None:
        try:
            for number in range(15):
                stores[place].execute(SaveSession(f"{name}{number}", {"n": number}))
        except BaseException as failure:
            failures.append(failure)

    threads = [threading.Thread(target=save, args=(f"{each}-", each % 2)) for each in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert len(execute(stores[0], LoadSessions(limit=100))) == 90
    for store in stores:
        store.close()
