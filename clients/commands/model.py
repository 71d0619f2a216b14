"""`svc model`: list the models of a server, test one, and write the choice."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from clients.commands.cli import SETTINGS, json_option, print_json, print_lines
from runtimes.cli.runtime_option import runtime_option
from svc_proto.cli.errors import USAGE_ERROR, CliError

if TYPE_CHECKING:
    from svc_proto.service_clients.model_probe import ModelAbilities, ModelListing, ModelTrial

__all__ = ["main"]

EXAMPLES = """
\b
Examples:
  svc model  # the models of the configured server
  svc model --url http://127.0.0.1:11434/v1  # those of another one (Ollama)
  svc model llama3.2 --url http://127.0.0.1:11434/v1  # test and choose
  svc model llama3.2 --no-test
  svc model gpt-x --url https://api.example/v1 --ask-key
  svc model --json | jq -r .models[]

The choice is written to config.yaml (model:), which a running API reads at its next turn. Where ~/.svc/.env has
SVC_MODEL_BASE_URL or SVC_MODEL, it is written there, and counts from the next start.

Exit codes: 0; 1 when the server does not answer, or the test fails, and then nothing is written; 2 for bad options.
"""
VARIABLES = ("SVC_MODEL_BASE_URL", "SVC_MODEL", "SVC_MODEL_API_KEY")
OLLAMA = "http://127.0.0.1:11434/v1"
SMALL_CONTEXT = 16_384  # tokens, below which the model is shown few tools


@click.command("model", epilog=EXAMPLES, context_settings=SETTINGS)
@click.argument("name", required=False)
@click.option("--url", metavar="URL", help="Address of an OpenAI-compatible server, up to /v1.  [as configured]")
@click.option("--ask-key", is_flag=True, help="Ask for the server's key on the terminal.")
@click.option("--context", type=click.IntRange(1, 10_000_000), help="Context size in tokens, to write as well.")
@click.option("--test/--no-test", default=True, show_default=True, help="Send one short request before writing.")
@json_option
@runtime_option
def main(
    name: str | None,
    *,
    url: str | None,
    ask_key: bool,
    context: int | None,
    test: bool,
    as_json: bool,
    runtime: str,
) -> None:
    """List the models of a server; with NAME, test that model and write the choice."""
    from clients.commands.host_settings import service_home
    from clients.commands.service_runner import run_flow
    from svc_proto.api.agent_settings import is_usable_base_url
    from svc_proto.service_clients.model_probe import find_abilities, list_models, try_model

    home = service_home()
    settings, known = _settings(home)
    base_url = (url or str(known.get("base_url", ""))).rstrip("/")
    if not base_url:
        missing = f"{known['name']} has no address" if known.get("name") else "no model is configured"
        raise CliError(f"{missing}: add --url, such as --url {OLLAMA}", code=USAGE_ERROR)
    if not is_usable_base_url(base_url):
        raise CliError("--url must be an http:// or https:// address without a password or a query", code=USAGE_ERROR)
    key = _key(base_url, known, ask=ask_key)
    listing = run_flow(lambda engine: list_models(engine, base_url, key), runtime, home=home)
    _check_listing(listing, base_url)
    if name is None and url is not None and len(listing.names) == 1:
        name = listing.names[0]
    if name is None:
        _print_list(listing, base_url, str(known.get("name", "")), as_json=as_json)
        return
    chosen = _full_name(name, listing, base_url)
    able = run_flow(lambda engine: find_abilities(engine, base_url, chosen, key, listing), runtime, home=home)
    trial = run_flow(lambda engine: try_model(engine, base_url, chosen, key), runtime, home=home) if test else None
    if trial is not None and trial.problem and not trial.refuses_tools:
        raise CliError(f"{chosen} does not answer: {trial.problem}; nothing was written (--no-test writes anyway)")
    values = {"base_url": base_url, "name": chosen, "key": key, "context": context}
    place, restart = _write(home, settings, values, given_key=ask_key)
    if as_json:
        tools = able.has_tools if trial is None or not trial.refuses_tools else False
        found = {"url": base_url, "model": chosen, "context": able.context, "tools": tools}
        print_json({**found, "written": place, "restart": restart})
        return
    print_lines([*_about(chosen, able, trial), f"Written to {place}.", *_next(restart)])


def _settings(home: Path) -> tuple[dict[str, str], dict[str, Any]]:
    """Return the settings of the environment and `.env`, and the model's settings."""
    import os

    from runtimes.service_home.home import EnvFileError, with_env_file
    from servers.host_report import model_settings

    try:
        settings = with_env_file(os.environ)
    except EnvFileError as error:
        raise CliError(str(error), code=USAGE_ERROR) from None
    return settings, model_settings(settings, home)


def _key(base_url: str, known: dict[str, Any], *, ask: bool) -> str:
    """Return the key for a server: typed by the user if `ask`, else the configured key.

    The configured key of a server with another origin is never returned; then the result is "".
    """
    from svc_proto.api.agent_settings import origin_of

    if ask:
        return str(click.prompt("Key", hide_input=True, err=True)).strip()
    configured = str(known.get("base_url", ""))
    return str(known.get("key", "")) if configured and origin_of(configured) == origin_of(base_url) else ""


def _check_listing(listing: ModelListing, base_url: str) -> None:
    if listing.problem:
        raise CliError(f"{base_url} cannot be reached: {listing.problem}; is the model's server running?")
    if listing.status in (401, 403):
        raise CliError(f"{base_url} refuses the key (status {listing.status}): --ask-key asks for another one")
    if listing.status not in (200, 404):
        raise CliError(f"{base_url}/models answers {listing.status}: does the address end in /v1?")
    if listing.status == 404 and not base_url.endswith("/v1"):
        raise CliError(f"{base_url} has no list of models: try {base_url}/v1")


def _full_name(name: str, listing: ModelListing, base_url: str) -> str:
    """Return the name as the server lists it; a server without a list accepts any name.

    Raises `CliError`, code 2, for a name that is not in the list.
    """
    from difflib import get_close_matches

    if not listing.names or name in listing.names:
        return name
    if f"{name}:latest" in listing.names:
        return f"{name}:latest"
    near = get_close_matches(name, listing.names, 1)
    hint = f"is {near[0]} meant?" if near else f"it has {', '.join(listing.names[:8])}"
    raise CliError(f"{base_url} has no model {name}: {hint}", code=USAGE_ERROR)


def _print_list(listing: ModelListing, base_url: str, current: str, *, as_json: bool) -> None:
    from svc_proto.basics.sanitize import sanitize_line

    if as_json:
        print_json({"url": base_url, "model": current or None, "models": list(listing.names)})
        return
    contexts = dict(listing.contexts)
    lines = [f"{base_url}: {len(listing.names)} models"]
    for each in listing.names:
        mark = "*" if each in (current, f"{current}:latest") else " "
        size = f"  {contexts[each]} tokens" if each in contexts else ""
        lines.append(f"{mark} {sanitize_line(each)}{size}")
    lead = "Choose one" if listing.names else "The server lists no model; name one"
    print_lines([*lines, f"{lead}: svc model NAME" + ("" if current else f" --url {base_url}")])


def _about(name: str, able: ModelAbilities, trial: ModelTrial | None) -> list[str]:
    lines = [f"{name}: answers after {trial.seconds:.1f} s" if trial is not None and not trial.problem else name]
    if able.has_tools is False or (trial is not None and trial.refuses_tools):
        lines.append("It cannot call tools, so it cannot use a phone: choose another one for that.")
    elif trial is not None and not trial.called_tool:
        lines.append("It did not call the tool of the test; small models do not always.")
    if able.context is not None and able.context < SMALL_CONTEXT:
        lines.append(f"Its server gives it {able.context} tokens: below {SMALL_CONTEXT} it is shown few tools.")
    return lines


def _next(restart: bool) -> list[str]:
    return ["Start the servers anew: svc down && svc up"] if restart else ["A running API uses it from its next turn."]


def _write(home: Path, settings: dict[str, str], values: dict[str, Any], *, given_key: bool) -> tuple[str, bool]:
    """Write the chosen model; return the path of the file, and whether the servers must be restarted.

    The file is `.env` if that has one of `VARIABLES`, else the configuration file. Raises `CliError` if one of these
    variables is in the environment, or the file cannot be changed.
    """
    import os

    named = [variable for variable in VARIABLES if settings.get(variable, "").strip()]
    foreign = [variable for variable in named if os.environ.get(variable, "").strip()]
    if foreign:
        raise CliError(f"{' and '.join(foreign)} of the environment would win over the choice: unset it first")
    if named:
        return _write_env_file(home, values, given_key=given_key), True
    return _write_config(home, settings, values, given_key=given_key), False


def _write_env_file(home: Path, values: dict[str, Any], *, given_key: bool) -> str:
    from runtimes.service_home.home import ENV_FILE
    from servers.env_file import set_env_variable
    from servers.launch import CannotStartError

    rows = {"SVC_MODEL_BASE_URL": values["base_url"], "SVC_MODEL": values["name"]}
    if given_key:
        rows["SVC_MODEL_API_KEY"] = values["key"]
    if values["context"]:
        rows["SVC_MODEL_CONTEXT"] = str(values["context"])
    try:
        for variable, value in rows.items():
            set_env_variable(home, variable, str(value), "the model")
    except CannotStartError as error:
        raise CliError(str(error)) from None
    return str(home / ENV_FILE)


def _write_config(home: Path, settings: dict[str, str], values: dict[str, Any], *, given_key: bool) -> str:
    from runtimes.failures import HostError
    from runtimes.files.private_files import ensure_private_folder
    from runtimes.files.state_folder import StateFolder
    from runtimes.host.compute import edit_yaml, load_yaml
    from svc_proto.api.agent_settings import file_base_url, origin_of
    from svc_proto.schema.json_object import JsonObject

    path = Path(settings.get("SVC_CONFIG") or home / "config.yaml").expanduser().absolute()
    try:
        text = path.read_text("utf-8") if path.exists() else ""
        found = load_yaml(text)
        model: dict[str, Any] = {"default": values["name"], "base_url": values["base_url"]}
        if values["context"]:
            model["context_length"] = values["context"]
        moved = origin_of(file_base_url(found)) != origin_of(values["base_url"])
        if given_key or (moved and JsonObject.of(found).get_object("model").get("api_key")):
            model["api_key"] = values["key"]  # the key of another server is never sent to this one
        edited = edit_yaml(text, {"model": model})
        StateFolder(ensure_private_folder(path.parent)).write(path.name, edited.encode())
    except UnicodeDecodeError:
        raise CliError(f"{path} is not UTF-8: mend it by hand") from None
    except (OSError, HostError) as error:
        raise CliError(f"{path} cannot be changed: {error}") from None
    return str(path)
