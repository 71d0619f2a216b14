"""Responses whose body is a file, for tests of the engine."""

from collections.abc import Callable

from svc_proto.commands import Command, Compute, SendFile
from svc_proto.engine.body_streams import FilePart
from svc_proto.engine.message import Request, Response
from svc_proto.wire.events import Headers
from tests.engine.toy_service import ToyPlaybook, open_book

TEXT = Headers([(b"content-type", b"text/plain")])


def without_work(book: ToyPlaybook) -> list[Command]:
    return [command for command in book.drain_commands() if not isinstance(command, Compute)]


def file_answer(length: int = 5, *, status: int = 200, headers: Headers = TEXT) -> Callable[[Request], Response]:
    return lambda request: Response(status, headers, file=FilePart(7, 2, length))


def sending(length: int = 5) -> tuple[ToyPlaybook, SendFile]:
    """Request a file of `length` bytes; return the playbook and the `SendFile` command."""
    book = open_book()
    book.toy.answer = file_answer(length)
    return book, book.get(b"/answer").order(SendFile)
