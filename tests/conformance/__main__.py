"""`python -m tests.conformance [--suite NAME]…`: run all suites, or the named ones; exit code 1 if one fails."""

import sys
from collections.abc import Callable
from functools import partial

import click
from attrs import frozen

from runtimes.cli.runtime_option import check_runtime
from tests.conformance.app_suite import app
from tests.conformance.autobahn_suite import autobahn, autobahn_over_http2
from tests.conformance.chat_clients_suite import chat_clients
from tests.conformance.chromium_suite import chromium
from tests.conformance.cluster_sessions_suite import many_sessions
from tests.conformance.cluster_suite import redis_cuts, rolling_restart
from tests.conformance.doctor_suite import doctor
from tests.conformance.external_tools import Unavailable
from tests.conformance.mcp_phone_suite import mcp_inspector, mcp_oauth, mcp_python, mcp_typescript
from tests.conformance.mcp_server_suite import mcp_server
from tests.conformance.mcp_suite import mcp
from tests.conformance.model_suite import long_chat
from tests.conformance.nghttp_suite import h2load, nghttp
from tests.conformance.openapi_suite import documents
from tests.conformance.pyodide_suite import pyodide
from tests.conformance.requests_suite import corpus, in_memory
from tests.conformance.result import Result
from tests.conformance.sse_suite import eventsource
from tests.conformance.task_suite import tasks

LOOPS = ("anyio", "trio", "curio")  # of suites that take seconds
ONE = ("anyio",)  # of suites that take many minutes, or need no loop


@frozen
class Suite:
    """A suite, its default loops, and `resumed`, which runs it but keeps the verdicts of an interrupted run."""

    run: Callable[[str], Result]
    runtimes: tuple[str, ...] = LOOPS
    resumed: Callable[[str], Result] | None = None


SUITES = {
    "requests": Suite(lambda runtime: in_memory(corpus()), ONE),
    "eventsource": Suite(eventsource),
    "nghttp": Suite(nghttp),
    "h2load": Suite(h2load),
    "chromium": Suite(chromium),
    "mcp": Suite(mcp),
    "mcp-python": Suite(mcp_python),
    "mcp-typescript": Suite(mcp_typescript),
    "mcp-inspector": Suite(mcp_inspector),
    "mcp-oauth": Suite(mcp_oauth),
    "mcp-server": Suite(mcp_server),
    "pyodide": Suite(lambda runtime: pyodide(), ONE),
    "app": Suite(app, ONE),
    "chat-clients": Suite(chat_clients, ONE),
    "model": Suite(lambda runtime: long_chat(), ONE),
    "tasks": Suite(lambda runtime: tasks(), ONE),
    "doctor": Suite(lambda runtime: doctor(), ONE),
    "schemathesis": Suite(documents, ONE),
    "cluster-restart": Suite(rolling_restart, ONE),
    "cluster-cuts": Suite(redis_cuts, ONE),
    "cluster-sessions": Suite(many_sessions, ONE),
    "autobahn": Suite(autobahn, ONE, partial(autobahn, resume=True)),
    "autobahn-h2": Suite(autobahn_over_http2, ONE, partial(autobahn_over_http2, resume=True)),
}


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--suite", "names", multiple=True, type=click.Choice(list(SUITES)), help="Run only this suite; repeatable."
)
@click.option(
    "--runtime",
    "runtimes",
    multiple=True,
    callback=lambda ctx, param, names: tuple(check_runtime(ctx, param, name) for name in names),
    help="Loops of the echo; repeatable.",
)
@click.option("--resume", is_flag=True, help="Autobahn: continue an interrupted run.")
def main(names: tuple[str, ...], runtimes: tuple[str, ...], resume: bool) -> None:
    """Run conformance suites; their packages are fetched into build/conformance. Autobahn takes most of an hour."""
    good = True
    for name in names or tuple(SUITES):
        suite = SUITES[name]
        run = suite.resumed if resume and suite.resumed else suite.run
        for runtime in runtimes or suite.runtimes:
            try:
                result = run(runtime)
            except Unavailable as why:
                click.echo(f"{name}: SKIPPED, {why}")
                break
            except (RuntimeError, AssertionError) as problem:  # a program that the suite needs has failed
                click.echo(f"{name}: FAILED, {problem}")
                good = False
                continue
            for line in result.lines():
                click.echo(line)
            good = good and not result.failed
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()
