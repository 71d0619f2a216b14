"""Selection of the app that scans the QR, by the terminal's user; `.env` in the service home keeps the answer."""

from __future__ import annotations

import os
import sys

import click

from runtimes.service_home.home import service_home_path
from servers.env_file import set_env_variable
from servers.launch import private_home, read_environment
from svc_proto.basics.brand import HERMES, SVC

__all__ = ["ask_brand"]

CHOICES = {"1": HERMES, "2": SVC}


def ask_brand(said: object) -> None:
    """Prompt for the brand, unless an option, a variable or an earlier answer names it.

    Raises `CannotStartError` and `click.Abort`.
    """
    if said or read_environment(os.environ).get("SVC_BRAND") or not (sys.stdin.isatty() and sys.stdout.isatty()):
        return
    print("Which app is to scan the QR?")
    print(f"  1  {HERMES.reader}, as it is today")
    print(f"  2  another one, that knows {SVC.scheme}://")
    try:
        picked = click.prompt("1 or 2", type=click.Choice(list(CHOICES)), default="1", show_choices=False)
    except click.Abort:
        print()  # after Ctrl-D the shell's prompt starts on a line of its own
        raise
    brand = CHOICES[picked]
    set_env_variable(private_home(str(service_home_path(os.environ))), "SVC_BRAND", brand.name, "the answer")
    print(f"SVC_BRAND={brand.name} is kept in {service_home_path(os.environ)}/.env; --brand says otherwise.")
