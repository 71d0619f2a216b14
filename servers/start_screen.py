"""Terminal screen of a start: a QR if it fits, how to pair, and the addresses.

Without a terminal there are only lines on how to pair, and no code is created: a stored code could admit others.
"""

import sys
import time
from collections.abc import Mapping, Sequence
from typing import cast

from attrs import frozen

from runtimes.cli.terminal_qr import on_resize, render_qr, ssh_hint
from runtimes.cli.word_wrap import wrap_line
from servers.launch import format_authority
from svc_proto.basics.brand import Brand
from svc_proto.commands import Notify
from svc_proto.machines.compact_invites import compact_payloads, payload_key
from svc_proto.machines.pairing_codes import CODE_LIFETIME
from svc_proto.schema.json_object import JsonObject

__all__ = ["StartScreen"]

LOCAL_API_NOTE = (
    "The API listens on this host only. For phones to chat, start with --host 0.0.0.0 or --api-host 0.0.0.0."
)
CODE_LIFETIME_TEXT = f"within {CODE_LIFETIME / 60:.0f} minutes"
AROUND = 4  # lines beside the rows: how to scan, two empty ones, what to do next
PAIR = "To pair a phone: svc pair"
NEXT = "Ctrl-C stops. Beside it: svc status, pair, logs -f; without a phone: svc phone"


@frozen(kw_only=True)
class StartScreen:
    """Screen of a start, with the values known before the servers run."""

    brand: Brand
    dashboard: str | None  # its address; None: no dashboard
    model: str | None  # None: no API
    api_only_here: bool = False
    password: str | None = None  # of the dashboard, if it was created at this start

    def show(self, news: Notify) -> None:
        """Print the invite, why there is none, or only how to pair, by the notification."""
        if news.event == "no invite":
            print(f"No pairing code: the relay could not be asked ({news.fields['why']}).", file=sys.stderr, flush=True)
            return
        if news.event == "invite":
            self._show_all(news.fields)
            return
        print(PAIR, flush=True)
        if self.api_only_here:
            print(LOCAL_API_NOTE, flush=True)

    def _show_all(self, invite: Mapping[str, object]) -> None:
        notes = [f"Note: {note}" for note in cast("Sequence[str]", invite.get("notes", ()))]
        notes += [LOCAL_API_NOTE] if self.api_only_here else []
        lines = [*self._lines(invite), *"\n".join(map(wrap_line, notes)).splitlines(), NEXT]
        hint = "" if self.dashboard is None else ssh_hint(self.dashboard)
        if hint:
            lines.append(wrap_line(hint))
        forms = compact_payloads(str(invite["qr_payload"]))
        print()
        qr = render_qr(forms[:1], below=len(lines) + AROUND - 1, small=False)
        if not qr.problem:
            sys.stdout.write(qr.text)
            print(wrap_line(f"Scan the QR with {self.brand.reader}, or enter the code."))
            print()
            print("\n".join(lines), flush=True)
            return
        print("\n".join(lines))
        print(wrap_line(f"Scan the QR with {self.brand.reader}, or enter the code."))
        self._draw_small(forms)
        expires_at = JsonObject(invite).number("expires_at")
        if expires_at is not None:
            on_resize(lambda: self._draw_small(forms) if time.time() < expires_at else None)

    def _draw_small(self, forms: list[str]) -> None:
        """Draw the QR at the end of the screen, in a shorter form if needed; if none fits, print where else it is."""
        qr = render_qr(forms, below=0)
        sys.stdout.write(qr.text)
        if qr.problem:
            board = "" if self.dashboard is None else f'"Pair new device" at {self.dashboard}, or '
            print(wrap_line(f"{qr.problem} Or enter the code, or see the QR by {board}svc pair --png."))
        sys.stdout.flush()

    def _lines(self, invite: Mapping[str, object]) -> list[str]:
        paired = invite.get("paired")
        authority = format_authority(str(invite["host"]), int(str(invite["port"])))
        addresses = [str(invite["relay_url"])]
        if self.model is not None:
            addresses.append(f"{'https' if invite['tls'] else 'http'}://{authority}")
        model = f"{self.model} (svc model connects another)" if self.model == "built-in" else self.model
        known = "" if paired is None else f"; {paired} paired"
        reached = invite.get("dashboard_url")
        rows = {
            "Code": f"{invite['code']}  works once, {CODE_LIFETIME_TEXT}{known}",
            "Key": payload_key(str(invite["qr_payload"])) or None,
            "Phones": "  ".join(addresses),
            "Dashboard": self.dashboard,
            "App": None if reached is None else f"{reached}  by hand, with the password",
            "Password": None if self.password is None else f"{self.password}  of the dashboard; stored in .env",
            "Model": model,
        }
        return [f"{name:<11}{text}" for name, text in rows.items() if text is not None]
