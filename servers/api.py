"""The API server: `python -m servers.api`."""

from __future__ import annotations

import click

from servers.options import HELP, ProgramCommand, api_options

__all__ = ["main"]

EXAMPLES = """
\b
Examples:
  python -m servers.api                                listen on 127.0.0.1:8642
  API_SERVER_KEY=… python -m servers.api --host 0.0.0.0
                                                       for other hosts too, for those who know the key
  API_SERVER_SSL_CERT=a.pem API_SERVER_SSL_KEY=key.pem python -m servers.api
                                                       over TLS; SIGHUP has both read again
  SVC_MODEL_BASE_URL=http://host/v1 SVC_MODEL=llama3.2 python -m servers.api
                                                       answer with a model that Ollama serves
  python -m servers.api --port 0 --runtime trio        on a free port, on another event loop
  SVC_BRAND=hermes python -m servers.api               speak the names that older clients know

\b
Settings are read from options, the environment (API_SERVER_HOST, API_SERVER_PORT, API_SERVER_KEY,
API_SERVER_CORS_ORIGINS, …), .env and config.yaml in ~/.svc (or SVC_HOME), the first of these first.
API_SERVER_ENABLED=false: do not start. Without a model, a small built-in agent answers.
With SVC_CLUSTER_URL, SVC_DATABASE_URL and API_SERVER_NODE_URL it is one of several that are one service.
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
