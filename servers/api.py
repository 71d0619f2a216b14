"""Command line of the API server: `python -m servers.api`."""

import click

from servers.options import HELP, ProgramCommand, api_options

__all__ = ["main"]

EXAMPLES = """
\b
Examples:
  python -m servers.api  # listen on 127.0.0.1:8642
  API_SERVER_KEY=… python -m servers.api --host 0.0.0.0  # for other hosts too
  API_SERVER_SSL_CERT=a.pem API_SERVER_SSL_KEY=key.pem python -m servers.api
  SVC_MODEL_BASE_URL=http://host/v1 SVC_MODEL=llama3.2 python -m servers.api
  python -m servers.api --port 0 --runtime trio  # a free port, another loop
  SVC_BRAND=hermes python -m servers.api  # names for clients that are not recognized

Settings are read from options, the environment (API_SERVER_HOST, API_SERVER_PORT, API_SERVER_KEY,
API_SERVER_CORS_ORIGINS, …), and .env and config.yaml in ~/.svc (or SVC_HOME); the first one wins.
API_SERVER_ENABLED=false prevents the start. SIGHUP loads certificate and key again.

Without a model, a small built-in agent answers. With SVC_CLUSTER_URL, SVC_DATABASE_URL and API_SERVER_NODE_URL the
server is one node of a cluster.
"""


@click.command(cls=ProgramCommand, epilog=EXAMPLES, context_settings=HELP)
@api_options
def main(runtime: str, **options: object) -> None:
    """Run the API server: chat sessions, streamed answers, the agent and its settings, over HTTP on one port."""
    from servers.api_program import api_programs
    from servers.launch import launch

    launch(lambda: api_programs(options), runtime)


if __name__ == "__main__":
    main()
