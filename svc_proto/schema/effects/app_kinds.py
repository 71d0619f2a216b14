"""Kinds of apps by their package name: in some kinds a touch has an effect, whatever its label is.

The packages of manufacturers differ, but share parts of their names that stand for a purpose, such as `dialer`.
"""

import re
from enum import Enum
from functools import lru_cache

__all__ = ["AppKind", "kind_of_app"]


class AppKind(Enum):
    """Kind of an app, by the purpose that decides on the effects of touches."""

    DIALER = "dialer"
    MESSAGING = "messaging"
    INSTALLER = "installer"
    PERMISSIONS = "permissions"
    SETTINGS = "settings"
    SYSTEM_UI = "system ui"
    SHARE_SHEET = "share sheet"
    BROWSER = "browser"
    LAUNCHER = "launcher"
    PRIVATE = "private"  # apps whose content is private: contacts, calendar, notes, health, photos, codes
    OTHER = "other"


# In this order: the first that matches a package decides.
_PATTERNS: tuple[tuple[AppKind, str], ...] = (
    (AppKind.PERMISSIONS, r"permissioncontroller|permission\.ui"),
    (
        AppKind.INSTALLER,
        (
            r"packageinstaller|appinstaller|apkinstall|sdkinstaller|\bvending\b|fdroid|f_droid|aurora|aptoide"
            r"|apkpure|uptodown|appmarket|appgallery|mipicks|samsungapps|venezia|app_?store|\bmarket\b"
            r"|\bstore\b"
        ),
    ),
    (AppKind.SHARE_SHEET, r"intentresolver|resolveractivity|chooser"),
    (AppKind.SYSTEM_UI, r"systemui|controlcenter|\bpowermenu\b"),
    (AppKind.SETTINGS, r"settings|securitycenter|systemmanager|devicepolicy|managedprovisioning|\blool\b|phonemanager"),
    (AppKind.LAUNCHER, r"launcher|\btrebuchet\b|\bhomescreen\b|nexuslauncher|\bmiui\.home\b"),
    (AppKind.DIALER, r"dialer|dialler|incall|telecom|truecaller|telefon|\bphone\b|callui|softphone|linphone"),
    (
        AppKind.BROWSER,
        (
            r"browser|chrome|chromium|firefox|fenix|\bfocus\b|\bklar\b|brave|opera\b|vivaldi|duckduckgo"
            r"|\bemmx\b|\bkiwi|torproject|webview_shell|\bsbrowser\b|\bucmobile\b|\bmetasr\b"
        ),
    ),
    (
        AppKind.MESSAGING,
        (
            r"messag|\bmms\b|\bsms\b|whatsapp|telegram|signal|\bchat|messenger|mail|\bgm\b|outlook|\bteams\b"
            r"|slack|discord|threema|viber|\bline\b|\btencent\.mm\b|mobileqq|kakao|snapchat|instagram|twitter"
            r"|facebook\.(orca|katana)|mastodon|tusky|reddit|\bk9\b|thunderbird|element|skype|zulip|\bwire\b"
        ),
    ),
    (
        AppKind.PRIVATE,
        (
            r"contact|people|calendar|\bnote|notes\b|keep\b|memo|health|gallery|photo|document|file|drive"
            r"|authenticator|\botp\b|wallet|password|keepass|bank|finance|medical|diary|journal"
        ),
    ),
)


@lru_cache(maxsize=512)
def kind_of_app(package: str) -> AppKind:
    """Return the kind of an app by patterns of its package name; `OTHER` if none matches."""
    name = package.casefold()
    return next((kind for kind, pattern in _PATTERNS if re.search(pattern, name)), AppKind.OTHER)
