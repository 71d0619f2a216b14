"""`python -m tests.conformance`: every suite that can be had, against the echo; exit code 1 if one has failures."""

from __future__ import annotations

import sys
from collections.abc import Callable

import click

from runtimes.run import RUNTIMES
from tests.conformance.autobahn_suite import autobahn
from tests.conformance.requests_suite import GUNICORN, in_memory, over_socket
from tests.conformance.result import Result
from tests.conformance.sse_suite import eventsource, httpx_sse
from tests.conformance.tools import Unavailable, echo_server, sdist

__all__ = ["main"]

Suite = Callable[[str], Result]


def _requests(runtime: str) -> Result:
    return in_memory(sdist(GUNICORN) / "tests" / "requests")


def _requests_over_socket(runtime: str) -> Result:
    folder = sdist(GUNICORN) / "tests" / "requests"
    with echo_server(runtime) as port:
        return over_socket(folder, port, runtime)


def _served(suite: Callable[[int, str], Result]) -> Suite:
    def run(runtime: str) -> Result:
        with echo_server(runtime) as port:
            return suite(port, runtime)

    return run


SUITES: dict[str, Suite] = {
    "requests": _requests,
    "requests-socket": _requests_over_socket,
    "httpx-sse": _served(httpx_sse),
    "eventsource": _served(eventsource),
    "autobahn": _served(autobahn),
}


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--suite", "names", multiple=True, type=click.Choice(list(SUITES)), help="Only these; repeatable.")
@click.option("--runtime", type=click.Choice(RUNTIMES), default="anyio", show_default=True, help="Loop of the echo.")
def main(names: tuple[str, ...], runtime: str) -> None:
    """Run conformance suites; what they need is fetched into build/conformance. Some minutes, most of them Autobahn."""
    good = True
    for name in names or tuple(SUITES):
        try:
            result = SUITES[name](runtime)
        except Unavailable as why:
            click.echo(f"{name}: SKIPPED, {why}")
            continue
        for line in result.lines():
            click.echo(line)
        good = good and not result.failed
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()
