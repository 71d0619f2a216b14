"""Faults of a real cluster at full size: a rolling restart under load, and broken connections to Redis.

Both use three relays behind nginx, with PostgreSQL and Redis, and phones that reconnect at once.
"""

import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from itertools import count, product
from pathlib import Path
from typing import TypeAlias

from tests.conformance.external_tools import Unavailable
from tests.conformance.result import Result
from tests.runtimes.certificates import make_certificate
from tests.runtimes.redis_server import RedisServer
from tests.servers.program_process import TIMEOUT, call, sign_in
from tests.servers.relay_cluster import FIRST_NUMBER, BackgroundLoad, NodePhone, RelayCluster, needs_nodes, until

PHONES = 300
RATE = 60  # commands a second
CALLERS = 12  # threads
BACK = 2.0  # s within which a phone is connected again
STOPPED = 1.0  # s for the stop of a node without a pending command, beside the pace of its phones (0.5 s)
CUTS = 100
DATABASE = 3
SentCommand: TypeAlias = tuple[int, NodePhone, tuple[int, str]]  # number, phone, and status and body of the answer


def _drive(cluster: RelayCluster) -> BackgroundLoad[SentCommand]:
    """Start threads that send commands at a constant rate to all phones in turn, through the proxy."""
    began = time.monotonic()

    def send(number: int) -> SentCommand:
        time.sleep(max(0.0, began + (number - FIRST_NUMBER) / RATE - time.monotonic()))
        phone = cluster.phones[number % len(cluster.phones)]
        return number, phone, cluster.tap(cluster.port, phone, number, phone.token)

    return BackgroundLoad([send] * CALLERS)


def _judge(result: Result, cluster: RelayCluster, load: BackgroundLoad[SentCommand], *, refusals: bool) -> None:
    """Record commands executed more than once, and those answered with 200 but not executed.

    Without `refusals`, also record those not answered with 200.
    """
    executed = Counter((phone.name, body["x"]) for phone in cluster.phones for body in phone.done)
    told = {(phone.name, number): answer for number, phone, answer in load.told}
    result.compare("doubled commands", [key for key, times in executed.items() if times > 1 and key in told], [])
    lost = [key for key, answer in told.items() if answer[0] == 200 and not executed[key]]
    result.compare("commands answered and not executed", lost, [])
    errors = {str(answer): key for key, answer in told.items() if answer[0] != 200}
    if not refusals:
        result.compare("commands not answered with 200", errors, {})


@contextmanager
def running_cluster(redis: dict[str, object] | None = None) -> Iterator[RelayCluster]:
    if any(mark.mark.args[1] for mark in needs_nodes[:2]) or needs_nodes[2].mark.args[0]:
        raise Unavailable("PostgreSQL, Redis or nginx is not installed")
    with tempfile.TemporaryDirectory(prefix="cluster-") as folder:
        path, env = Path(folder), {}
        server = RedisServer(path)
        if redis is not None:
            cert, key = make_certificate(path)
            server, env = RedisServer(path, db=DATABASE, tls=(cert, key)), {"SSL_CERT_FILE": str(cert)}
        with RelayCluster(path, env=env, redis=server) as cluster:
            yield cluster


def _accepts(port: int, phone: NodePhone) -> bool:
    return call(port, "GET", "/sessions", token=phone.token).status == 200


def rolling_restart(_: str = "") -> Result:
    """Restart three nodes in turn while phones receive commands; record lost and doubled commands, and delays."""
    result = Result("cluster-restart")
    with running_cluster() as cluster:
        for n in range(PHONES):
            cluster.pair(f"p{n:03}", n % 3)
        for n in range(3):
            cluster.wait_reached(n, cluster.phones[-1])
        load = _drive(cluster)
        stops = []
        time.sleep(3.0)
        for n in range(3):
            began = time.monotonic()
            cluster.stop(n)
            stops.append(time.monotonic() - began)
            cluster.start_node(n)
            time.sleep(3.0)
        load.end()
        _judge(result, cluster, load, refusals=False)
        gaps = sorted(gap for phone in cluster.phones for gap in phone.gaps)
        result.compare("phones that have not moved", [phone.name for phone in cluster.phones if not phone.gaps][:5], [])
        result.compare("phones that were away for too long", [gap for gap in gaps if gap > BACK], [])
        result.compare("nodes that stopped too late", [stop for stop in stops if stop > 0.5 + STOPPED], [])
        result.figures = (
            f"{len(load.told)} commands, {len(gaps)} reconnections, the longest {gaps[-1]:.2f} s, "
            f"stops {', '.join(f'{stop:.2f}' for stop in stops)} s"
        )
    return result


def redis_cuts(_: str = "") -> Result:
    """Cut the connections of three nodes to Redis many times while commands are sent and pairing codes are used."""
    result = Result("cluster-cuts")
    with running_cluster({}) as cluster:
        for n in range(30):
            cluster.pair(f"p{n:03}", n % 3)
        used: list[tuple[str, int]] = []
        codes = (f"CUT{n:03}" for n in count())
        over = threading.Event()

        def use_codes() -> None:
            while not over.is_set():
                code = next(codes)
                if call(cluster.ports[0], "POST", "/pairing/register", {"code": code}).status != 200:
                    continue
                answers: list[bool] = []

                def use(port: int, code: str = code, answers: list[bool] = answers) -> None:
                    answers.append("session_token" in sign_in(port, pairing_code=code, device_id=f"{code} {port}"))

                threads = [threading.Thread(target=use, args=(port,)) for port in cluster.ports]
                for thread in threads:
                    thread.start()
                for thread in threads:
                    thread.join(TIMEOUT)
                used.append((code, answers.count(True)))

        load = _drive(cluster)
        pairing = threading.Thread(target=use_codes)
        pairing.start()
        for n in range(CUTS):
            time.sleep(0.05 + (n % 10) * 0.04)
            cluster.redis.cut()
        over.set()
        pairing.join(TIMEOUT)
        load.end()
        _judge(result, cluster, load, refusals=True)
        result.compare("codes used twice", [code for code, times in used if times > 1], [])
        good = sum(times == 1 for _, times in used)
        result.note("codes are accepted", None if good else "no code was accepted")
        for phone, port in product(cluster.phones, cluster.ports):
            until(partial(_accepts, port, phone), phone.name)
        result.compare("phones that were signed out", [phone.name for phone in cluster.phones if phone.refused], [])
        for n in range(3):
            cluster.wait_reached(n, cluster.phones[0])
        answered = Counter(answer[0] for _, _, answer in load.told)
        result.figures = f"{CUTS} cuts, {len(used)} codes ({good} accepted), commands by status: {dict(answered)}"
    return result
