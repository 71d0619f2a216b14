"""`python -m tests.conformance`: every suite that can be had, against the echo; exit code 1 if one has failures."""

from __future__ import annotations

import sys
from collections.abc import Callable

import click
from attrs import frozen

from runtimes.option import check_runtime
from tests.conformance.autobahn_suite import autobahn, autobahn_over_http2
from tests.conformance.chromium_suite import chromium
from tests.conformance.mcp_phone_suite import mcp_inspector, mcp_oauth, mcp_python, mcp_typescript
from tests.conformance.mcp_server_suite import mcp_server
from tests.conformance.mcp_suite import mcp
from tests.conformance.nghttp_suite import h2load, nghttp
from tests.conformance.openapi_suite import documents
from tests.conformance.pyodide_suite import pyodide
from tests.conformance.requests_suite import GUNICORN, in_memory, over_socket
from tests.conformance.result import Result
from tests.conformance.sse_suite import eventsource, httpx_sse
from tests.conformance.tools import FOLDER, Certificate, Unavailable, echo_server, sdist
from tests.runtimes.certificates import make_certificate

__all__ = ["SUITES", "Suite", "main"]

LOOPS = ("anyio", "trio", "curio")  # where a suite of seconds runs by default
ONE = ("anyio",)  # where one of many minutes does, or one that needs no loop


@frozen
class Suite:
    """What to run on one loop, keeping the verdicts of a run that was broken off or not; and on which loops."""

    run: Callable[[str, bool], Result]
    runtimes: tuple[str, ...] = LOOPS


def _requests(runtime: str, resume: bool) -> Result:
    return in_memory(sdist(GUNICORN) / "tests" / "requests")


def _requests_over_socket(runtime: str, resume: bool) -> Result:
    folder = sdist(GUNICORN) / "tests" / "requests"
    with echo_server(runtime) as port:
        return over_socket(folder, port, runtime)


def _pyodide(runtime: str, resume: bool) -> Result:
    return pyodide()


def _documents(runtime: str, resume: bool) -> Result:
    return documents(runtime)


def _served(suite: Callable[[int, str], Result]) -> Suite:
    def run(runtime: str, resume: bool) -> Result:
        with echo_server(runtime) as port:
            return suite(port, runtime)

    return Suite(run)


def _served_twice(suite: Callable[[int, int, str], Result]) -> Suite:
    """Without TLS, and with."""

    def run(runtime: str, resume: bool) -> Result:
        with echo_server(runtime) as port, echo_server(runtime, _certificate()) as secure_port:
            return suite(port, secure_port, runtime)

    return Suite(run)


def _certificate() -> Certificate:
    FOLDER.mkdir(parents=True, exist_ok=True)
    return make_certificate(FOLDER)


def _chromium(runtime: str, resume: bool) -> Result:
    certificate = _certificate()
    with echo_server(runtime) as port, echo_server(runtime, certificate) as secure_port:
        return chromium(port, secure_port, runtime, certificate)


def _mcp(runtime: str, resume: bool) -> Result:
    return mcp(runtime)


def _autobahn(runtime: str, resume: bool) -> Result:
    with echo_server(runtime) as port:
        return autobahn(port, runtime, resume=resume)


def _autobahn_over_http2(runtime: str, resume: bool) -> Result:
    with echo_server(runtime) as port:
        return autobahn_over_http2(port, runtime, resume=resume)


SUITES = {
    "requests": Suite(_requests, ONE),
    "requests-socket": Suite(_requests_over_socket),
    "httpx-sse": _served(httpx_sse),
    "eventsource": _served(eventsource),
    "nghttp": _served_twice(nghttp),
    "h2load": _served_twice(h2load),
    "chromium": Suite(_chromium),
    "mcp": Suite(_mcp),
    "mcp-python": Suite(lambda runtime, resume: mcp_python(runtime)),
    "mcp-typescript": Suite(lambda runtime, resume: mcp_typescript(runtime)),
    "mcp-inspector": Suite(lambda runtime, resume: mcp_inspector(runtime)),
    "mcp-oauth": Suite(lambda runtime, resume: mcp_oauth(runtime)),
    "mcp-server": Suite(lambda runtime, resume: mcp_server(runtime)),
    "pyodide": Suite(_pyodide, ONE),
    "schemathesis": Suite(_documents, ONE),
    "autobahn": Suite(_autobahn, ONE),
    "autobahn-h2": Suite(_autobahn_over_http2, ONE),
}


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--suite", "names", multiple=True, type=click.Choice(list(SUITES)), help="Only these; repeatable.")
@click.option(
    "--runtime",
    "runtimes",
    multiple=True,
    callback=lambda ctx, param, names: tuple(check_runtime(ctx, param, name) for name in names),
    help="Loops of the echo; repeatable.",
)
@click.option("--resume", is_flag=True, help="Autobahn: keep the verdicts of a run that was broken off.")
def main(names: tuple[str, ...], runtimes: tuple[str, ...], resume: bool) -> None:
    """Run conformance suites; what they need is fetched into build/conformance. Autobahn takes most of an hour."""
    good = True
    for name in names or tuple(SUITES):
        suite = SUITES[name]
        for runtime in runtimes or suite.runtimes:
            try:
                result = suite.run(runtime, resume)
            except Unavailable as why:
                click.echo(f"{name}: SKIPPED, {why}")
                break
            except RuntimeError as problem:  # of a program that a suite needs
                click.echo(f"{name}: FAILED, {problem}")
                good = False
                continue
            for line in result.lines():
                click.echo(line)
            good = good and not result.failed
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()
