"""The program `svc-relay`: a desktop's side of a relay, and the operator's switch."""

from __future__ import annotations

import click

from clients.commands.cli import SETTINGS, Lazy

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
    cls=Lazy,
    modules={
        "pair": ("clients.commands.pair_desktop:main", "Pair this desktop by a code or an invite."),
        "status": ("clients.commands.status:main", "Show the sessions that are stored here."),
        "devices": ("clients.commands.devices:main", "List, revoke and extend the devices of a relay."),
        "shell": ("clients.commands.shell:main", "A terminal on the relay's host; --exec runs one command."),
        "sessions": ("clients.commands.sessions:main", "List the terminal sessions on the relay's host; end one."),
        "chat": ("clients.commands.chat:main", "Say something to the agent and stream its answer."),
        "notifications": ("clients.commands.notifications:main", "What the paired phones have shown lately."),
        "media": ("clients.commands.media:main", "Fetch a file that the relay hands out."),
        "voice": ("clients.commands.voice:main", "Speech: to text, from text, and talking with the agent."),
        "bridge": ("clients.commands.bridge:main", "Have a phone do something."),
        "doctor": ("clients.commands.doctor:main", "Look for what is wrong, and say what to do."),
        "insecure-api-key": ("clients.commands.security:main", "Accept API keys over plain HTTP from other hosts?"),
    },
    epilog=EXAMPLES,
    context_settings=SETTINGS,
)
@click.version_option(package_name="svc-relay", message="%(prog)s %(version)s")
def main() -> None:
    """Use a relay from a desktop."""


if __name__ == "__main__":
    main(prog_name="svc-relay")
