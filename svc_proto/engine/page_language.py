"""Language of the HTML pages that the servers write: sign-in, consent, OAuth and OpenAPI viewer.

The cookie `svc-relay-language`, which the language setting of the dashboard's page writes, has precedence over
`Accept-Language` (RFC 9110 section 12.5.4); without a supported language the pages are in English. Cookies are for a
host and not for a port (RFC 6265 section 8.5), so one setting applies to all servers of a host.
"""

import re
from html import escape

from svc_proto.basics.fast_frozen import fast_frozen
from svc_proto.engine.page_messages import MESSAGES, TRANSLATIONS
from svc_proto.wire.events import Headers

__all__ = ["COOKIE", "LANGUAGES", "VARY", "PageTexts", "find_language", "page_texts"]

LANGUAGES = ("en", *TRANSLATIONS)
COOKIE = b"svc-relay-language"
VARY = (b"vary", b"accept-language, cookie")
"""Header field of a page that caches may store."""
MAX_RANGES = 32  # language ranges that are read; the others are ignored

_WEIGHT = re.compile(rb"q=(0(?:\.[0-9]{0,3})?|1(?:\.0{0,3})?)")  # RFC 9110 section 12.4.2
_VALUE = re.compile(r"\{(\w+)\}")


@fast_frozen
class PageTexts:
    """Texts of a page in one language. The English text is the key, as in the messages of the dashboard's page."""

    language: str

    def html(self, text: str, **values: str) -> str:
        """Return a text of `MESSAGES` as HTML. `{name}` stands for a value, which is HTML already."""
        words = text if self.language == "en" else MESSAGES[text][TRANSLATIONS.index(self.language)]
        return _VALUE.sub(lambda found: values[found[1]], escape(words, quote=False))

    def error_html(self, message: str) -> str:
        """Return the message of an error as HTML; on a page in another language, English text is marked as English."""
        if self.language == "en" or message in MESSAGES:
            return self.html(message) if message in MESSAGES else escape(message)
        return f'<span lang="en">{escape(message)}</span>'


def page_texts(headers: Headers) -> PageTexts:
    """Return the texts in the language of a request."""
    return PageTexts(find_language(headers))


def find_language(headers: Headers) -> str:
    """Return the language of a request, one of `LANGUAGES`: of the cookie, else of `Accept-Language`, else English."""
    chosen = _cookie_language(headers)
    return chosen or next((code for code in _accepted_languages(headers) if code in LANGUAGES), "en")


def _cookie_language(headers: Headers) -> str:
    for value in headers.all(b"cookie"):
        for pair in value.split(b";"):
            name, _, code = pair.strip().partition(b"=")
            if name == COOKIE and code.decode("latin-1") in LANGUAGES:
                return code.decode("latin-1")
    return ""


def _accepted_languages(headers: Headers) -> list[str]:
    """Return the primary subtags of the first `MAX_RANGES` members of `Accept-Language`, the preferred ones first.

    Members with q=0 or an invalid parameter are left out.
    """
    found: list[tuple[float, str]] = []
    for member in headers.tokens(b"accept-language")[:MAX_RANGES]:
        tag, _, parameter = member.partition(b";")
        weight = _WEIGHT.fullmatch(parameter.strip())
        quality = float(weight[1]) if weight else 1.0 if not parameter else 0.0
        if quality:
            found.append((quality, tag.strip().partition(b"-")[0].decode("latin-1")))
    return [code for _, code in sorted(found, key=lambda each: -each[0])]
