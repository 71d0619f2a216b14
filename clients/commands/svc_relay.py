"""The program `svc-relay`: client of a relay for a desktop, with one command for the relay's operator."""

import click

from clients.commands.cli import SETTINGS, LazyGroup
from runtimes.cli.click_help import version_option

__all__ = ["main"]

EXAMPLES = """
\b
Examples:
  svc-relay pair Q7M2ZK --remote ws://192.168.1.5
  svc-relay shell
  svc-relay chat 'What is on the phone?'
  svc-relay bridge GET /ping

\b
Shell completion (bash; zsh and fish likewise):
  eval "$(_SVC_RELAY_COMPLETE=bash_source svc-relay)"
"""


@click.group(
    cls=LazyGroup,
    modules={
        "pair": ("clients.commands.pair_desktop:main", "Pair this desktop with a code or an invite."),
        "status": ("clients.commands.status:main", "Show the stored sessions."),
        "devices": ("clients.commands.devices:main", "List, revoke and extend the devices of a relay."),
        "shell": ("clients.commands.shell:main", "Open a terminal on the relay's host."),
        "sessions": ("clients.commands.sessions:main", "List or end terminal sessions on the relay's host."),
        "chat": ("clients.commands.chat:main", "Send a message to the agent and stream its answer."),
        "notifications": ("clients.commands.notifications:main", "Show the latest notifications of the phones."),
        "media": ("clients.commands.media:main", "Fetch a file from the relay."),
        "voice": ("clients.commands.voice:main", "Transcribe, synthesize, or talk with the agent."),
        "bridge": ("clients.commands.bridge:main", "Send a command to a phone."),
        "doctor": ("clients.commands.doctor:main", "Check the stored sessions and suggest remedies."),
        "insecure-api-key": ("clients.commands.insecure_api_key:main", "Show or set the use of API keys without TLS."),
    },
    epilog=EXAMPLES,
    context_settings=SETTINGS,
)
@version_option()
def main() -> None:
    """Use a relay from a desktop."""


if __name__ == "__main__":
    main(prog_name="svc-relay")
