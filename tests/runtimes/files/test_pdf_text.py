"""Tests of the text of PDF files: pages, limits, damaged files, and failures of the child program that reads them."""

import sys
from io import BytesIO, TextIOWrapper

import pytest

from runtimes.failures import HostError
from runtimes.files import pdf_text, pdf_text_program
from runtimes.files.pdf_text import read_pdf_text
from runtimes.files.pdf_text_program import main, read_text
from svc_proto.facts import FailureKind
from tests.support.pdf_file import one_page_pdf


def test_text_of_all_pages() -> None:
    assert read_pdf_text(one_page_pdf("buy tea\nand milk")) == {"pages": 2, "read": 2, "text": "buy tea\n\nand milk"}


@pytest.mark.parametrize("data", [b"", b"%PDF-1.4\n", b"%PDF-1.4\n" + bytes(1_000), one_page_pdf("x")[:300]])
def test_a_damaged_file(data: bytes) -> None:
    assert read_text(data) == {"error": "the PDF file is damaged"}


def test_pages_beyond_the_limits_are_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pdf_text_program, "MAX_PAGES", 2)
    found = read_text(one_page_pdf("a\nb\nc"))
    assert (found["pages"], found["read"], found["text"]) == (3, 2, "a\n\nb")
    monkeypatch.setattr(pdf_text_program, "MAX_CHARS", 2)
    found = read_text(one_page_pdf("abc\nb\nc"))
    assert (found["pages"], found["read"], found["text"]) == (3, 1, "ab")


@pytest.mark.parametrize(
    ("name", "value", "kind"),
    [
        ("TIMEOUT", 0.0, FailureKind.TIMED_OUT),
        ("PROGRAM", "/nowhere/program.py", FailureKind.TOO_LARGE),  # as if it were killed
        ("find_spec", lambda name: None, FailureKind.UNSUPPORTED),
    ],
)
def test_a_reader_that_fails(monkeypatch: pytest.MonkeyPatch, name: str, value: object, kind: FailureKind) -> None:
    monkeypatch.setattr(pdf_text, name, value)
    with pytest.raises(HostError) as caught:
        read_pdf_text(one_page_pdf("x"))
    assert caught.value.failure.kind is kind


def test_the_program(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(pdf_text_program, "_limit", lambda: None)
    monkeypatch.setattr(sys, "stdin", TextIOWrapper(BytesIO(one_page_pdf("x"))))
    assert main([]) == 0

    def exhaust(data: bytes) -> dict[str, object]:
        raise MemoryError

    monkeypatch.setattr(pdf_text_program, "read_text", exhaust)
    assert main([]) == 0
    first, second = capsys.readouterr().out.splitlines()
    assert ('"text": "x"' in first, "too much memory" in second) == (True, True)
