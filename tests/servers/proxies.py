"""nginx (on loopback only) or Caddy in front of servers of a test, on a port of its own."""

import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from shutil import which

from tests.servers.program_process import SYSTEM_PATH, ProgramProcess
from tests.support.ports import free_port

NGINX = """
daemon off; master_process off; error_log stderr notice; pid {folder}/nginx.pid;
events {{ worker_connections 2048; }}
http {{
    access_log off;
    client_body_temp_path {folder}/body; proxy_temp_path {folder}/proxy; fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi; scgi_temp_path {folder}/scgi;
    {around} server {{ listen 127.0.0.1:{port}; {block} }}
}}
"""


@contextmanager
def in_front(folder: Path, kind: str, block: str, around: str = "", *, user: int | None = None) -> Iterator[int]:
    """Run nginx or Caddy; yield its port, which replaces `{port}` in `block`. `around` goes outside of nginx's server.

    With `user`, for tests that root runs, the proxy has that user, which must be able to reach the folder.
    """
    folder.mkdir()
    if user is not None:
        shutil.chown(folder, user)
    port, file = free_port(), folder / "proxy.conf"
    block = block.replace("{port}", str(port))
    if kind == "nginx":
        file.write_text(NGINX.format(folder=folder, port=port, block=block, around=around))
        command = ["-p", str(folder), "-c", str(file)]
    else:
        file.write_text("{\nadmin off\nauto_https off\n}\n" + block)
        command = ["run", "--config", str(file), "--adapter", "caddyfile"]
    program = which(kind, path=SYSTEM_PATH) or kind
    with subprocess.Popen(
        [program, *command],
        env={"HOME": str(folder)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        user=user,
        cwd=folder,
    ) as process:
        try:
            ProgramProcess(process).line("event method|serving initial configuration")
            yield port
        finally:
            process.kill()
