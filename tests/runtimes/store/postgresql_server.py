"""PostgreSQL server of the tests: one for each test process, on a Unix socket in its own folder.

It sorts by a locale, not by bytes, does not wait for the disk, and ends with the process.
"""

import atexit
import os
import pwd
import shutil
import subprocess
import tempfile
from functools import cache
from importlib.util import find_spec
from itertools import count
from pathlib import Path

import pytest

WITHIN = 120  # s for its start and its stop on a busy machine
OTHERS = pwd.getpwuid(65534).pw_name  # the unprivileged account for it: root is refused
_SERVER = Path(shutil.which("postgres") or max(Path("/usr/lib/postgresql").glob("*/bin/postgres"), default="postgres"))
_INITDB, _PG_CTL = (_SERVER.resolve().with_name(name) for name in ("initdb", "pg_ctl"))
MISSING = not _INITDB.exists() or find_spec("psycopg") is None
needs_postgresql = pytest.mark.needs("PostgreSQL or psycopg", MISSING)
_NUMBERS = count(1)


class PostgresqlServer:
    """A PostgreSQL server in a folder of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.programs = _INITDB.parent  # for a path
        self._user = OTHERS if os.geteuid() == 0 else None
        if self._user is not None:
            os.chown(folder, pwd.getpwnam(OTHERS).pw_uid, -1)
        # A socket's path is limited in length, and is in here, too.
        self._run(_INITDB, "-D", "data", "-U", "svc", "--auth=trust", "--no-sync", "--no-instructions", "-E", "UTF8",
                  "--locale-provider=icu", "--icu-locale=en-US")  # fmt: skip
        self.start()

    def start(self) -> None:
        """Start the server, and wait until it answers."""
        settings = {
            "listen_addresses": "", "unix_socket_directories": str(self.folder), "fsync": "off",
            "shared_buffers": "16MB", "max_connections": "30", "autovacuum": "off", "restart_after_crash": "off",
        }  # fmt: skip
        told = " ".join(f"-c {name}='{value}'" for name, value in settings.items())
        self._run(_PG_CTL, "start", "-D", "data", "-w", "-t", str(WITHIN), "-o", told)

    def stop(self, mode: str = "fast") -> None:
        """Stop the server: `fast` cuts connections, `immediate` does not even finish writing."""
        self._run(_PG_CTL, "stop", "-D", "data", "-w", "-t", str(WITHIN), "-m", mode)

    def execute(self, statement: str, database: str = "postgres") -> list[tuple[object, ...]]:
        """Execute statements on a connection of their own; return the rows of the last one."""
        import psycopg

        with psycopg.connect(f"host={self.folder} user=svc dbname={database}", autocommit=True) as connection:
            cursor = connection.execute(statement.encode())
            while cursor.nextset():
                pass
            return cursor.fetchall() if cursor.description else []

    def empty(self) -> str:
        """Return the URL of the shared database, with its main tables empty; its schema may be up to date already."""
        if not self.execute("SELECT 1 FROM pg_database WHERE datname = 'svc'"):
            self.execute("CREATE DATABASE svc")
        elif self.execute("SELECT 1 FROM pg_tables WHERE tablename = 'chat_responses'", "svc"):
            tables = "paired_sessions, chat_sessions, chat_messages, chat_responses"
            self.execute(f"TRUNCATE {tables} RESTART IDENTITY CASCADE", "svc")
        return self.url("svc")

    def fresh(self) -> str:
        """Return the URL of a new database, without a schema."""
        name = f"fresh_{next(_NUMBERS)}"
        self.execute(f"CREATE DATABASE {name}")
        return self.url(name)

    def url(self, database: str) -> str:
        return f"postgresql://svc@/{database}?host={self.folder}"

    def end(self) -> None:
        """Stop the server, if it runs, and delete its folder."""
        if (self.folder / "data" / "postmaster.pid").exists():
            self.stop("immediate")
        shutil.rmtree(self.folder, ignore_errors=True)

    def _run(self, program: Path, *arguments: str) -> None:
        """Run a program in the server's folder. Raise RuntimeError if its exit code is not 0.

        Its output goes to a file, since a server that it starts would keep a pipe open.
        """
        told = self.folder / "log"
        with told.open("ab") as log:
            done = subprocess.run(
                [program, *arguments],
                cwd=self.folder,
                user=self._user,
                stdout=log,
                stderr=log,
                timeout=WITHIN,
                check=False,
            )
        if done.returncode:
            raise RuntimeError(told.read_text()[-2000:])


@cache
def server() -> PostgresqlServer:
    """Return the PostgreSQL server of this process, which is created once and ends with the process."""
    one = PostgresqlServer(Path(tempfile.mkdtemp(prefix="svc-pg-", dir="/tmp")))
    atexit.register(one.end)
    return one
