"""Mesh VPN of this host, by the JSON of `tailscale status` and `tailscale serve status`."""

from attrs import frozen

from svc_proto.commands import Compute
from svc_proto.engine.child_process import CommandResult, run_command
from svc_proto.engine.core import Engine
from svc_proto.engine.flow import Flow, run_operation
from svc_proto.schema.json_object import JsonObject

__all__ = ["MeshStatus", "find_mesh", "parse_served_ports", "parse_mesh_status"]

PORT_DIGITS = 5
QUERY_TIMEOUT = 1.5  # s for each of the two commands: pairing must not wait for a VPN that hangs


@frozen
class MeshStatus:
    """Mesh identity of this host: an address, its name there, and the ports that the mesh serves with TLS."""

    address: str
    name: str | None
    served: tuple[int, ...] = ()


def find_mesh(engine: Engine) -> Flow[MeshStatus | None]:
    """Return the mesh identity of this host; None without the mesh program, without its answer, or off the mesh."""
    program = yield from run_operation(engine, Compute(engine.new_op(), "which", ("tailscale",)))
    if not isinstance(program, str):
        return None
    finished = yield from run_command(engine, (program, "status", "--json"), within=QUERY_TIMEOUT)
    mesh = parse_mesh_status(finished.output) if isinstance(finished, CommandResult) else None
    if mesh is None or mesh.name is None:
        return mesh
    finished = yield from run_command(engine, (program, "serve", "status", "--json"), within=QUERY_TIMEOUT)
    return (
        MeshStatus(mesh.address, mesh.name, parse_served_ports(finished.output))
        if isinstance(finished, CommandResult)
        else mesh
    )


def parse_mesh_status(text: bytes) -> MeshStatus | None:
    """Parse the output of `status --json`; None if this host is not up on the mesh."""
    status = JsonObject.parse_or_empty(text)
    if status.get("BackendState", "Running") != "Running":
        return None
    members = status.get_object("Self")
    listed = [address for address in members.texts("TailscaleIPs") if address]
    if not listed:
        return None
    best = next((address for address in listed if ":" not in address), listed[0])  # IPv4, which every phone can use
    return MeshStatus(best, members.text("DNSName").rstrip(".") or None)


def parse_served_ports(text: bytes) -> tuple[int, ...]:
    """Return the ports in the output of `serve status --json` that are served with TLS.

    They are served with HTTPS, or as TCP behind TLS; a `serve` in the foreground has a configuration of its own.
    """
    status = JsonObject.parse_or_empty(text)
    foreground = status.get_object("Foreground")
    found = dict[int, None]()
    for served in (status, *(foreground.get_object(session) for session in foreground)):
        ports = served.get_object("TCP")
        for port in (port for port in ports if port.isascii() and port.isdecimal() and len(port) <= PORT_DIGITS):
            way = ports.get_object(port)
            if way.get("HTTPS") is True or way.text("TerminateTLS"):
                found[int(port)] = None
    return tuple(found)
