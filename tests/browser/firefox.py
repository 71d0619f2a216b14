"""Firefox for tests with the marker `firefox`: Debian's, driven by Playwright over WebDriver BiDi.

`firefox.cjs` changes the three places in which Playwright needs a later Firefox. Playwright reports no bodies of
requests over BiDi, so `RECORD_BODIES` stores them in the page. The colour scheme is that of the system.
"""

from __future__ import annotations

from pathlib import Path
from shutil import which
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Playwright

FIREFOX = which("firefox-esr") or which("firefox")
NODE_OPTIONS = f"--require={Path(__file__).with_suffix('.cjs')}"
PREFERENCES: dict[str, str | float | bool] = {
    "network.dns.localDomains": "evil.example",  # a foreign site, whose requests do not leave this host
    "dom.ipc.processPrelaunch.enabled": False,  # processes that no page uses cost seconds
}
RECORD_BODIES = """
{
  const original = globalThis.fetch;
  globalThis.sentBodies = {};
  globalThis.fetch = (address, options) => {
    if (options?.body) globalThis.sentBodies[new URL(address, location.href).href] = options.body;
    return original(address, options);
  };
}
"""


def launch_firefox(playwright: Playwright) -> Browser:
    """Start Firefox without a window."""
    return playwright.firefox.launch(channel="moz-firefox", executable_path=FIREFOX, firefox_user_prefs=PREFERENCES)
