"""Blocking host work by name: the functions that a core can order with `Compute`.

A function receives the arguments of the command and returns plain values. An exception becomes a `Failure`.
"""

import ctypes
import io
import os
import re
import shutil
import socket
from collections.abc import Callable, Mapping, MutableMapping, Sequence
from datetime import date
from functools import cache
from typing import Any
from urllib.parse import urlsplit

from runtimes.failures import HostError
from runtimes.files.env_file import parse_env_file, set_env_line
from runtimes.files.pdf_text import read_pdf_text
from runtimes.host.metrics_text import metrics_text
from runtimes.host.pump import Pump
from runtimes.host.thread_pool import ThreadPool
from runtimes.speech.local_speech import SPEECH_FUNCTIONS
from svc_proto.commands import Compute
from svc_proto.facts import FailureKind
from svc_proto.settings import S3Bucket

__all__ = [
    "COMPUTE_FUNCTIONS",
    "ComputeService",
    "edit_yaml",
    "is_executable",
    "release_memory",
    "list_folders",
    "list_network_addresses",
    "load_yaml",
    "yaml_line",
    "qr_rows",
    "real_paths",
    "find_program",
    "sign_s3_request",
]

YAML_NODES = 100_000  # values in one document, aliases counted each time; more is INVALID
FOLDERS = 1_000  # greatest number of names that `list_folders` returns
YAML_DEPTH = 64  # levels of one document; more is INVALID
_NESTED = re.compile(r"^[^\s#-][^\n]*:[ \t]*(?:#[^\n]*)?\n(?:[ \t]*#[^\n]*\n)*( *)(?:(- )|[^\s#-])", re.MULTILINE)
MAX_LINE = 1 << 20  # characters: lines of an edited document are not folded
ADDRESS_PROBES = {  # addresses of documentation: connecting a datagram socket to them sends nothing
    socket.AF_INET: "192.0.2.1",  # RFC 5737
    socket.AF_INET6: "2001:db8::1",  # RFC 3849
}
DISCARD_PORT = 9


class ComputeService:
    """Service that performs the `Compute` commands of a core on worker threads."""

    def __init__(self, pump: Pump, workers: ThreadPool, table: Mapping[str, Callable[..., object]]) -> None:
        self._pump = pump
        self._workers = workers
        self._table = table
        pump.serve({Compute: self._compute})

    def _compute(self, command: Compute) -> None:
        function = self._table.get(command.name)
        if function is None:
            self._pump.refuse(command.op, FailureKind.UNSUPPORTED, f"no host work named {command.name}")
            return
        self._pump.work(command.op, self._workers, lambda: function(*command.args))


def load_yaml(text: str) -> dict[str, object]:
    """Parse a YAML document whose top is a mapping (or empty) into plain JSON types; dates become ISO text.

    Only `true` and `false` (also `True`, `TRUE` etc.) are booleans, as in YAML 1.2: `language: no` is Norwegian.
    Raise `HostError` INVALID for text that is no such document, and for one with too many values or levels, or with
    values of other types.
    """
    import yaml  # noqa: PLC0415, RUF100 - loaded when first needed: start-up is a user's time

    try:
        loaded = yaml.load(text, _yaml_loader())  # noqa: S506 - a subclass of SafeLoader
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        mark = getattr(error, "problem_mark", None)
        where = f" at line {mark.line + 1}" if mark is not None else ""
        raise HostError(FailureKind.INVALID, f"not YAML{where}") from error
    if loaded is None:
        return {}
    if not isinstance(loaded, dict):
        raise HostError(FailureKind.INVALID, "the top of the YAML document is not a mapping")
    plain: dict[str, object] = _Plain().value(loaded, YAML_DEPTH)
    return plain


def yaml_line(text: str, path: Sequence[str]) -> int | None:
    """Return the number of the line (from 1) of the member at `path`, or of the nearest parent that exists.

    None means that the path is empty, or that not even its first name exists. `text` is a document that `load_yaml`
    accepts.
    """
    import yaml  # noqa: PLC0415, RUF100 - loaded when first needed

    node, line = yaml.compose(text, _yaml_loader()), None
    for name in path:
        pairs = node.value if isinstance(node, yaml.MappingNode) else []
        found = [(key, value) for key, value in pairs if key.value == name]
        if not found:
            return line
        (key, node) = found[-1]  # the last of equal names counts
        line = key.start_mark.line + 1
    return line


@cache
def _yaml_loader() -> type[Any]:
    import yaml  # noqa: PLC0415, RUF100 - loaded when first needed

    class Loader(yaml.SafeLoader):
        """`SafeLoader` with the booleans of YAML 1.2."""

        yaml_implicit_resolvers = {  # noqa: RUF012 - the class attribute of the library
            first: [(tag, pattern) for tag, pattern in rules if tag != "tag:yaml.org,2002:bool"]
            for first, rules in yaml.SafeLoader.yaml_implicit_resolvers.items()
        }

    words = re.compile("(?:true|True|TRUE|false|False|FALSE)$")
    Loader.add_implicit_resolver("tag:yaml.org,2002:bool", words, list("tTfF"))
    return Loader


def edit_yaml(text: str, changes: Mapping[str, object]) -> str:
    """Return a YAML document with members set, nested mappings member by member; comments and order stay.

    Raises `HostError` INVALID if the document cannot be parsed, or not edited without changing other values.
    """
    from ruamel.yaml import YAML  # noqa: PLC0415, RUF100 - loaded when first needed
    from ruamel.yaml.error import YAMLError  # noqa: PLC0415, RUF100 - loaded when first needed

    wanted = load_yaml(text)
    _merge(wanted, changes, str)
    editor = YAML()
    editor.preserve_quotes = True
    editor.width = MAX_LINE
    for found in _NESTED.finditer(text):
        if found[2] is None:
            editor.map_indent = len(found[1]) or editor.map_indent
        else:
            editor.sequence_dash_offset = len(found[1])
            editor.sequence_indent = len(found[1]) + 2
    out = io.StringIO()
    try:
        document = editor.load(text)
        if document is None:  # nothing but comments
            document = editor.map()
            out.write(text if not text or text.endswith("\n") else f"{text}\n")
        _merge(document, changes, _scalar)
        editor.dump(document, out)
    except (YAMLError, ValueError, RecursionError) as error:
        raise HostError(FailureKind.INVALID, "a YAML document that cannot be edited") from error
    edited = out.getvalue()
    if load_yaml(edited) != wanted:  # the editor implements YAML 1.2, the reader 1.1
        raise HostError(FailureKind.INVALID, "a YAML document that cannot be edited")
    return edited


def find_program(name: str) -> str | None:
    """Return the path of a program found by name on this process's PATH, or None."""
    return shutil.which(name)


def is_executable(path: str) -> bool:
    """Report whether a path is a file that may be executed."""
    return os.path.isfile(path) and os.access(path, os.X_OK)


def list_folders(path: str) -> tuple[str, ...]:
    """Return the sorted names of the folders in a folder, at most `FOLDERS`; empty when the folder does not exist."""
    try:
        with os.scandir(os.path.expanduser(path)) as entries:
            return tuple(sorted(entry.name for entry in entries if entry.is_dir())[:FOLDERS])
    except FileNotFoundError:
        return ()


def real_paths(*paths: str) -> tuple[str, ...]:
    """Resolve symbolic links in each path; components that do not exist are kept by name."""
    return tuple(map(os.path.realpath, paths))


def release_memory() -> None:
    """Give freed memory of this process back to the system, where the allocator has a call for that (glibc)."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)


def qr_rows(text: str) -> list[str]:
    """Return a text as a QR code without margin: one string of 0 and 1 (dark) for each row of modules.

    Raises `HostError` TOO_LARGE for a text that fits no QR.
    """
    import segno  # noqa: PLC0415, RUF100 - loaded when first needed

    try:
        code = segno.make(text, error="l", micro=False)
    except ValueError as error:
        raise HostError(FailureKind.TOO_LARGE, "more than a QR holds") from error
    return ["".join("1" if module & 1 else "0" for module in row) for row in code.matrix]


def list_network_addresses() -> list[dict[str, object]]:
    """Return a row for each IPv4 and IPv6 address of this host.

    Its members are `interface`, `address`, `up`, `point_to_point`, and `default`: whether connections to the Internet
    use the address.
    """
    import psutil  # noqa: PLC0415, RUF100 - loaded when first needed: start-up is a user's time

    states, defaults = (
        psutil.net_if_stats(),
        {_source_address(family, probe) for family, probe in ADDRESS_PROBES.items()},
    )
    rows: list[dict[str, object]] = []
    for interface, addresses in psutil.net_if_addrs().items():
        state = states.get(interface)
        flags = () if state is None else state.flags.split(",")
        rows += [
            {
                "interface": interface,
                "address": each.address,
                "up": state is None or state.isup,
                "point_to_point": "pointopoint" in flags,
                "default": each.address.partition("%")[0] in defaults,
            }
            for each in addresses
            if each.family in ADDRESS_PROBES
        ]
    return rows


def _source_address(family: socket.AddressFamily, probe: str) -> str:
    try:
        with socket.socket(family, socket.SOCK_DGRAM) as sock:
            sock.connect((probe, DISCARD_PORT))
            return str(sock.getsockname()[0])
    except OSError:  # no route, or no such family
        return ""


def sign_s3_request(bucket: S3Bucket, method: str, url: str, digest: str) -> dict[str, str]:
    """Return the header fields that sign a request whose body has this SHA-256 (AWS Signature Version 4).

    `host` is among them. Raises `HostError` if the library is not installed.
    """
    try:
        from aws_request_signer import AwsRequestSigner  # noqa: PLC0415, RUF100 - an extra
    except ImportError:
        text = "aws-request-signer is not installed: pip install 'svc-relay[s3]'"
        raise HostError(FailureKind.UNSUPPORTED, text) from None
    signer = AwsRequestSigner(bucket.region, bucket.key, bucket.secret, "s3", bucket.token or None)
    return {"host": urlsplit(url).netloc, **signer.sign_with_headers(method, url, {}, digest)}


COMPUTE_FUNCTIONS: Mapping[str, Callable[..., object]] = {
    "dotenv.load": parse_env_file,
    "dotenv.set": set_env_line,
    "yaml.load": load_yaml,
    "yaml.edit": edit_yaml,
    "network_addresses": list_network_addresses,
    "which": find_program,
    "executable": is_executable,
    "list_folders": list_folders,
    "real_paths": real_paths,
    "memory.give_back": release_memory,
    "qr.rows": qr_rows,
    "pdf.text": read_pdf_text,
    "metrics.text": metrics_text,
    "s3.sign": sign_s3_request,
    **SPEECH_FUNCTIONS,
}


def _merge(target: MutableMapping[str, Any], changes: Mapping[str, object], scalar: Callable[[str], object]) -> None:
    for name, value in changes.items():
        if isinstance(value, Mapping):
            if not isinstance(target.get(name), MutableMapping):
                target[name] = {}
            _merge(target[name], value, scalar)
        else:
            target[name] = scalar(value) if isinstance(value, str) else value


def _scalar(text: str) -> object:
    """Return text as the editor should write it: quoted if a YAML 1.1 reader could parse another value."""
    import yaml  # noqa: PLC0415, RUF100 - loaded when first needed
    from ruamel.yaml.scalarstring import DoubleQuotedScalarString  # noqa: PLC0415, RUF100 - loaded when first needed

    try:
        plain = yaml.safe_load(text) == text
    except yaml.YAMLError:
        plain = False
    return text if plain else DoubleQuotedScalarString(text)


class _Plain:
    """Converter of loaded YAML into JSON types. A node counts for the limits again wherever an alias repeats it."""

    def __init__(self) -> None:
        self._nodes = 0

    def value(self, value: Any, depth: int) -> Any:
        self._nodes += 1
        if not depth or self._nodes > YAML_NODES:
            raise HostError(FailureKind.INVALID, "the YAML document is too large or too deep")
        if isinstance(value, dict):
            return {str(key): self.value(inner, depth - 1) for key, inner in value.items()}
        if isinstance(value, list):
            return [self.value(inner, depth - 1) for inner in value]
        if value is None or isinstance(value, str | bool | int | float):
            return value
        if isinstance(value, date):
            return value.isoformat()
        raise HostError(FailureKind.INVALID, f"the YAML document holds a {type(value).__name__}")
