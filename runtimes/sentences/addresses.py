"""Web addresses and package names in the slots and the texts of sentences."""

import re
from collections.abc import Mapping

__all__ = ["address_in", "find_address", "has_dot", "is_package"]

ADDRESSED = ("app", "site", "place", "destination", "short")  # slots that can have an address
_DOT = " (?:dot|punkt|point|punto) |\\s?点\\s?|\\."
_DOMAIN = re.compile(
    rf"(?:https?://)?(?:www(?:{_DOT}))?[a-z0-9-]{{1,63}}(?:(?:{_DOT})[a-z0-9-]{{2,63}}){{1,4}}(?:/\S*)?", re.IGNORECASE
)
# Words that call a part of a sentence an address, in all languages.
_PAGE = (
    "(?:(?:web ?|internet)?(?:site|page|address|seite|adresse)|url|link|lien|enlace|homepage|direcci[oó]n|p[aá]gina)"
)
_THIS = "(?:(?:the|this|that|der|die|das|diese|dieser|le|la|cette|ce|el|esta|este|esa|ese|de|del|von|of) |l['\u2019])"
_CHINESE_PAGE = "(?:[那这]个)?(?:网址|网站|网页|链接|地址|页面|官网|首页)"
_ADDRESS_WORDS = re.compile(
    f"(?:{_THIS}*{_PAGE}(?: (?:web|internet|de|del|du|von|of|called|namens))*[: ]+"
    f"|{_CHINESE_PAGE}[是叫:\uff1a ]*)(?=[a-z0-9])"
    f"|(?<=[a-z0-9/])(?: {_THIS}*{_PAGE}| th(?:e|is|at)|[ 的]*(?:{_CHINESE_PAGE}|[那这]个))$",
    re.IGNORECASE,
)
_DOTTED = re.compile(r"[a-z0-9]\.[a-z]{2}", re.IGNORECASE)  # a part of an address
_PACKAGE = re.compile(r"(?:com|org|net|de|io|app)\.[a-z]\w*\.\w+", re.IGNORECASE)
_WRITTEN = re.compile(
    r"(?<![\w@.])(?:https?://)?[a-z0-9-]+(?:\.[a-z0-9-]+)*\.[a-z]{2,}(?:/[\w./?=&#%-]*)?(?![\w@])",
    re.IGNORECASE | re.ASCII,
)


def address_in(slots: Mapping[str, str]) -> str:
    """Return the address in an app, a site, a place or a destination, without the words that call it one; else ""."""
    for text in (_ADDRESS_WORDS.sub("", slots[name]) for name in ADDRESSED if name in slots):
        if _DOMAIN.fullmatch(text) is not None and not is_package(text):
            plain = re.sub(_DOT, ".", text.lower())
            return plain if plain.startswith("http") else f"https://{plain}"
    return ""


def find_address(text: str) -> str:
    """Return the first web address that is written in a text; "" without one."""
    found = _WRITTEN.search(text)
    return "" if found is None or is_package(found[0]) else found[0]


def has_dot(text: str) -> bool:
    """Report whether a text may have a part of an address."""
    return _DOTTED.search(text) is not None


def is_package(text: str) -> bool:
    """Report whether a text is the name of a package of an app."""
    return _PACKAGE.fullmatch(text) is not None
