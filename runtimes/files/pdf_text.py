"""Text of PDF files, read by a child process that is killed when it takes too long."""

import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

from runtimes.failures import HostError
from svc_proto.facts import FailureKind
from svc_proto.schema.json_object import JsonObject

__all__ = ["read_pdf_text"]

TIMEOUT = 25.0  # s
PROGRAM = str(Path(__file__).with_name("pdf_text_program.py"))


def read_pdf_text(data: bytes) -> JsonObject:
    """Return `pages`, `read` (number of pages that were read) and `text` of a PDF file, or only `error`.

    Raises `HostError` if pypdf is missing, or if the child process fails or takes longer than `TIMEOUT`.
    """
    if find_spec("pypdf") is None:
        raise HostError(FailureKind.UNSUPPORTED, "pypdf is not installed: pip install 'svc-relay[serve]'")
    argv = [sys.executable, "-I", PROGRAM]  # `-I` excludes modules of the working directory
    try:
        done = subprocess.run(
            argv, input=data, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env={}, timeout=TIMEOUT, check=False
        )
    except subprocess.TimeoutExpired:
        raise HostError(FailureKind.TIMED_OUT, "the PDF file takes too long to read") from None
    if done.returncode != 0:
        raise HostError(FailureKind.TOO_LARGE, "the PDF file takes too much time or memory to read")
    return JsonObject.load(done.stdout, ours=True)
