from typing import Any

import pytest

from svc_proto import commands
from svc_proto.basics.errors import Refused
from svc_proto.engine.files import ensure_secret, read_file, read_yaml, spool_file, update_yaml
from svc_proto.facts import Done, Failed, Failure, FailureKind, OperationId
from tests.engine.test_flow import Owner
from tests.engine.toy_service import ToyPlaybook, open_book

ONE, TWO, THREE = OperationId(1), OperationId(2), OperationId(3)


def opened(**changes: Any) -> commands.OpenedFile:
    return commands.OpenedFile(**{"handle": 7, "real_path": "/f", "size": 3, "modified": 0.0, **changes})


def reading(flow: str = "file") -> tuple[ToyPlaybook, list[Any]]:
    """Start a flow that reads `/f`, as bytes or as YAML; return the playbook and the list that receives its result."""
    book = open_book()
    owner = Owner(book)
    owner.spawn(read_yaml(book.engine, "/f") if flow == "yaml" else read_file(book.engine, "/f", limit=4))
    book.after(0.0) << []
    return book, owner.told


def test_a_whole_file() -> None:
    book, told = reading()
    book >> Done(ONE, opened(size=4)) << [commands.ReadFile(TWO, 7, 0, 4)]
    book >> Done(TWO, b"abcd") << [commands.ReleaseFile(7)]
    assert told == [b"abcd"]


@pytest.mark.parametrize(
    ("file", "kind"), [(opened(regular=False), FailureKind.INVALID), (opened(size=5), FailureKind.TOO_LARGE)]
)
def test_files_that_are_not_read(file: commands.OpenedFile, kind: FailureKind) -> None:
    book, told = reading()
    book >> Done(ONE, file) << [commands.ReleaseFile(7)]
    assert told[0].kind is kind


def test_failures_and_invalid_files_pass_through() -> None:
    book, told = reading("yaml")
    book >> Failed(ONE, Failure(FailureKind.NOT_FOUND)) << []
    assert told == [Failure(FailureKind.NOT_FOUND)]
    book, told = reading("yaml")
    (book >> Done(ONE, opened())).drain_commands()
    book >> Done(TWO, b"\xff") << [commands.ReleaseFile(7)]
    assert told == [Failure(FailureKind.INVALID, "not UTF-8")]
    book, told = reading("yaml")
    (book >> Done(ONE, opened())).drain_commands()
    (book >> Done(TWO, b"}")).drain_commands()
    book >> Failed(THREE, Failure(FailureKind.INVALID)) << []
    assert told == [Failure(FailureKind.INVALID)]


def test_a_cancelled_reader_releases_its_file(book: ToyPlaybook) -> None:
    owner = Owner(book)
    owner.spawn(read_file(book.engine, "/f"))
    book >> Done(ONE, opened()) << [commands.ReadFile(TWO, 7, 0, 1024 * 1024)]
    book.engine.timers.timer(owner.cancel).set(book.now.mono)
    book.after(0.0) << [commands.Cancel(TWO), commands.ReleaseFile(7)]


@pytest.mark.parametrize(
    ("parsed", "result"),
    [({"a": 1, 2: "b"}, {"a": 1, "2": "b"}), (None, {}), ([1], Failure(FailureKind.INVALID, "not a mapping"))],
)
def test_yaml(parsed: object, result: object) -> None:
    book, told = reading("yaml")
    (book >> Done(ONE, opened())).drain_commands()
    book >> Done(TWO, b"abc") << [commands.ReleaseFile(7), commands.Compute(THREE, "yaml.load", ("abc",))]
    book >> Done(THREE, parsed) << []
    assert told == [result]


def test_update_yaml_creates_a_missing_file(book: ToyPlaybook) -> None:
    owner = Owner(book)

    def change(found: object) -> dict[str, object]:
        return {"a": {} if found is None else 1}

    flow = update_yaml(book.engine, "/f", change, lambda words: Refused(500, "failed", words), name="f")
    book.act(lambda: owner.spawn(flow)) << [commands.OpenFile(ONE, "/f")]
    book >> Failed(ONE, Failure(FailureKind.NOT_FOUND)) << [commands.Compute(TWO, "yaml.load", ("",))]
    book >> Done(TWO, None) << [commands.Compute(THREE, "yaml.edit", ("", {"a": {}}))]
    book >> Done(THREE, "a: {}") << [commands.WriteConfig(OperationId(4), "f", "a: {}")]
    book >> Done(OperationId(4), None) << []
    assert owner.told == [None]


def test_a_secret(book: ToyPlaybook) -> None:
    owner = Owner(book)
    order = commands.EnsureSecret(ONE, "qr", b"\1" + b"\0" * 7 + b"\1" + b"\0" * 7)
    book.act(lambda: owner.spawn(ensure_secret(book.engine, "qr", 16))) << [order]
    book >> Done(ONE, b"k" * 16) << []
    assert owner.told == [b"k" * 16]
    assert commands.OpenFile.answer is commands.OpenedFile


@pytest.mark.parametrize("fails", [1, 2, 3, 0])
def test_a_file_of_the_spool(fails: int) -> None:
    book, problem = open_book(), Failure(FailureKind.NO_SPACE)
    owner = Owner(book)
    owner.spawn(spool_file(book.engine, ".txt", b"words"))
    steps: list[tuple[OperationId, Any, list[Any]]] = [(ONE, 7, [commands.WriteBlob(TWO, 7, b"words")])]
    steps += [(TWO, 5, [commands.FinishBlob(THREE, 7)]), (THREE, "/spool/1.txt", [])]
    for operation, answer, next_order in steps:
        if operation == fails:
            book >> Failed(operation, problem) << ([] if operation is ONE else [commands.DiscardBlob(7)])
            break
        book >> Done(operation, answer) << next_order
    assert owner.told == [problem if fails else "/spool/1.txt"]


def test_an_empty_spool_file_is_not_written(book: ToyPlaybook) -> None:
    Owner(book).spawn(spool_file(book.engine, ".mp3"))
    book >> Done(ONE, 7) << [commands.FinishBlob(TWO, 7)]
