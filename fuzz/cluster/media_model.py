"""Expected media of a cluster: files uploaded at one node and fetched from any."""

from base64 import b64encode
from collections.abc import Callable
from math import inf
from random import Random

from attrs import define, evolve

from fuzz.cluster.actors import ClusterPhone
from fuzz.cluster.deployment import UPLOADS_LIVE, ClusterDeployment
from fuzz.cluster.invariants import BACK, SOON, ClusterViolation
from runtimes.sim.process import SimProcess
from svc_proto.engine.message import Request, Response
from svc_proto.wire.events import Headers
from tests.support.sim_http import RequestClient

MARGIN = 8.0  # s before the end of a file's time, in which no check requires it
UNAVAILABLE = "media_store_unavailable"


@define(eq=False)
class UploadedFile:
    """Uploaded file whose token was reported."""

    path: str
    data: bytes
    process: SimProcess  # that received the upload
    told_at: float
    knows: list[SimProcess]  # live nodes that certainly learned of it

    def forget(self, world: ClusterDeployment) -> None:
        """Remove the nodes that are not stable from `knows`.

        Under faults, soon after the upload, only the receiving node can remain.
        """
        if not world.is_fault_free and world.sim.now - self.told_at < SOON:
            self.knows = [self.process]
        self.knows = [process for process in self.knows if process in world.stable_nodes]


class ClusterMediaModel:
    """Expected state of all uploads. `waits` is called with each pending request, `over` with each finished one."""

    def __init__(
        self,
        world: ClusterDeployment,
        rng: Random,
        waits: Callable[[RequestClient], None],
        over: Callable[[RequestClient, str], None],
    ) -> None:
        self._world, self._rng, self._waits, self._over = world, rng, waits, over
        self._all: list[UploadedFile] = []
        self._s3_troubled = 0.0  # when the bucket was last repaired; infinite until it is

    # --- actions ---

    def upload(self, node: int, phone: ClusterPhone) -> None:
        """Upload random bytes to a node as a phone. If the storage is shared, the node may be killed afterwards."""
        world, process, began = self._world, self._world.nodes[node], self._world.sim.now
        data = self._rng.randbytes(self._rng.choice((10, 400_000)))

        def brought(caller: RequestClient) -> None:
            self._over(caller, "brought")
            self._check_upload(caller, began)
            if caller.status == 200:
                all_nodes = world.is_fault_free and world.troubled < began
                knows = world.stable_nodes if all_nodes else [process]
                path = f"/media/{caller.answer.json['token']}"
                self._all.append(UploadedFile(path, data, process, world.sim.now, knows))
                if self._is_shared and len(world.stable_nodes) > 1 and self._rng.random() < 0.2:
                    process.kill()  # the token was reported, so the other nodes have the file

        body = {"content": b64encode(data).decode(), "content_type": "image/png", "file_name": "a.png"}
        self._waits(world.request(node, "POST", "/media/upload", token=phone.token, body=body, done=brought))

    def fetch(self, node: int, phone: ClusterPhone) -> None:
        """Fetch one of the last four files, or a part of it, from a node, and check the response."""
        if not self._all:
            return
        world, file, began = self._world, self._rng.choice(self._all[-4:]), self._world.sim.now
        first = self._rng.choice((0, 5))

        def fetched(caller: RequestClient) -> None:
            self._over(caller, "fetched")
            self._check_upload(caller, began)
            if caller.status in (200, 206) and caller.answer.body != file.data[first:]:
                raise ClusterViolation(f"of {file.path} came {len(caller.answer.body)} bytes that are not it")
            calm = world.is_fault_free and began > world.troubled + BACK and self._is_shared
            if caller.status == 404 and calm and self._must_exist(file):
                raise ClusterViolation(f"node {node} has nothing at {file.path}, which was told")

        fields = {"range": f"bytes={first}-"} if first else {}
        self._waits(world.request(node, "GET", file.path, token=phone.token, fields=fields, done=fetched))

    def break_bucket(self) -> None:
        """Stop the bucket, or let its responses fail, for up to 4 s; do nothing without a bucket."""
        world, rng, s3 = self._world, self._rng, self._world.s3
        if s3 is None:
            return
        self._s3_troubled = inf
        if rng.random() < 0.5:
            world.s3_process.kill()
        else:
            s3.instead = rng.choice(_BUCKET_FAILURES)
        world.sim.after(0.05, self._check_faulty_bucket)
        world.sim.after(rng.uniform(0.5, 4.0), self.repair_bucket)

    def _check_faulty_bucket(self) -> None:
        up = [n for n, process in enumerate(self._world.nodes) if process.alive and process.ready]
        inside = [phone for phone in self._world.phones if phone.is_authenticated]
        for n in up if inside else ():
            self.fetch(n, inside[0])

    def repair_bucket(self) -> None:
        """Start the bucket again if it is dead, and end the failures of its responses."""
        world, s3 = self._world, self._world.s3
        if s3 is not None:
            s3.instead = lambda request, response: response
            if not world.s3_process.alive:
                world.s3_process = world.s3_process.restart()
            self._s3_troubled = world.sim.now

    # --- checks ---

    @property
    def _is_shared(self) -> bool:
        return self._world.uploads is not None

    def _check_upload(self, caller: RequestClient, began: float) -> None:
        world = self._world
        code = caller.answer.json.get("code", "") if caller.status == 503 else ""
        if code == UNAVAILABLE and (world.s3 is None or began > self._s3_troubled + BACK):
            raise ClusterViolation("a node does not have the bucket's files, and the bucket is well")

    def _must_exist(self, file: UploadedFile) -> bool:
        return bool(file.knows) and self._world.sim.now - file.told_at < UPLOADS_LIVE - MARGIN

    def refresh(self) -> None:
        """Update which nodes must have each file."""
        world = self._world
        calm = world.is_fault_free and world.sim.now > world.troubled + BACK
        for file in self._all:
            file.forget(world)
            if calm and file.knows:
                file.knows = world.stable_nodes

    def check(self, asks: ClusterPhone) -> None:
        """Check each file at each node, in a cluster without faults."""
        world = self._world
        for file in self._all:
            for n in range(len(world.nodes)):
                answer = world.request_and_wait(n, "GET", file.path, token=asks.token).answer
                there = self._must_exist(file) if self._is_shared else file.process in world.nodes
                right = answer.status == 200 and answer.body == file.data
                if not right and (there or answer.status != 404):
                    raise ClusterViolation(f"node {n} answers {answer.status} to {file.path}, which is there: {there}")
                if right and not there and not self._is_shared:
                    raise ClusterViolation(f"node {n} has {file.path}, whose node is gone")

    def check_end(self, asks: ClusterPhone) -> None:
        """Wait until all files of a shared storage have expired, and check that each node answers 404.

        A bucket must have none of the files that were required until then. Do nothing if each node stores its own
        files, or none was uploaded.
        """
        world = self._world
        if not self._is_shared or not self._all:
            return
        kept = [file for file in self._all if self._must_exist(file)]
        world.sim.run_for(UPLOADS_LIVE)
        for file in self._all:
            for n in range(len(world.nodes)):
                if (status := world.request_and_wait(n, "GET", file.path, token=asks.token).status) != 404:
                    raise ClusterViolation(f"node {n} answers {status} to {file.path}, whose time is over")
        left = [] if world.s3 is None else list(world.s3.objects.values())
        if any(file.data in left for file in kept):
            raise ClusterViolation("the bucket has a file whose time is over, and no node deletes it")


_BUCKET_FAILURES: tuple[Callable[[Request, Response], Response], ...] = (
    lambda request, response: Response(503, Headers(), b""),
    lambda request, response: evolve(response, body=response.body[:-1]),
    lambda request, response: evolve(response, status=500 if request.method == "PUT" else response.status),
)
