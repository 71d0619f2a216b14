"""Plain form of a text for comparisons, and the parts of a name that look like others.

`plain` undoes what changes a text's characters and keeps its look: compatibility forms, invisible characters, Cyrillic
and Greek letters among Latin ones, digits among letters, spaced letters, joined words (UTS 39, reduced to the letters
in use).
"""

import re
import unicodedata

__all__ = ["has_look_alikes", "plain", "show_look_alikes", "without_marks"]

# Cyrillic and Greek letters with the look of a Latin one.
_LOOK_ALIKES = str.maketrans(
    "авеԁһіјӏкмпоԛрѕтԝхусԍгзѵαβεηικνορτυχωγАВЕНІЈКМОРЅТХУСΑΒΕΖΗΙΚΜΝΟΡΤΥΧ",
    "abedhijlkmnoqpstwxycgr3vabenikvoptuxwyABEHIJKMOPSTXYCABEZHIKMNOPTYX",
)
_DIGIT_LETTERS = str.maketrans("013457@$", "oieastas")
_MIXED_DIGITS = re.compile(r"(?<![\w@$])(?=[\w@$]*[a-z])(?=[\w@$]*[0-9@$])[a-z0-9@$]+(?![\w@$])")
_SPACED = re.compile(r"(?<!\w)(?:\w[ .\-_·*]){2,}\w(?!\w)")
_JOINED = re.compile(r"(?<=[a-z])(?=[A-Z])")
_SPACES = re.compile(r"[\s_/|\-–—.,:;·•*!?¡¿…。！？、，()\[\]{}<>«»“”„\"'’]+")
_WORDS = re.compile(r"\w+")


def plain(text: str) -> str:
    """Return a text in lower case, with Latin letters for look-alikes, and single spaces for usual punctuation.

    A word keeps its letters if it has any, such as one in Cyrillic, that no Latin letter looks like.
    """
    text = without_marks(unicodedata.normalize("NFKC", text))
    text = _SPACED.sub(lambda found: re.sub(r"\W|_", "", found[0]), text)
    text = _JOINED.sub(" ", text)
    text = _WORDS.sub(_plain_word, text).casefold()
    text = _MIXED_DIGITS.sub(lambda found: found[0].translate(_DIGIT_LETTERS), text)
    return _SPACES.sub(" ", text).strip()


def without_marks(text: str) -> str:
    """Return a text without format characters (category Cf, with tags) and variation selectors 1 to 16."""
    if text.isascii():
        return text
    return "".join(each for each in text if unicodedata.category(each) != "Cf" and not "\ufe00" <= each <= "\ufe0f")


def has_look_alikes(text: str) -> bool:
    """Report whether a word mixes Latin letters with a script that has look-alikes of them, such as Cyrillic."""
    return any(_is_mixed(word) for word in _WORDS.findall(text))


def show_look_alikes(text: str) -> str:
    """Return a text whose words that mix Latin with look-alike letters have hexadecimal escapes for all but ASCII."""
    return _WORDS.sub(lambda found: _escaped(found[0]) if _is_mixed(found[0]) else found[0], text)


def _plain_word(found: re.Match[str]) -> str:
    word = found[0]
    folded = word.translate(_LOOK_ALIKES)
    return folded if folded.isascii() else word


def _is_mixed(word: str) -> bool:
    if word.isascii():
        return False
    scripts = {unicodedata.name(letter, "?").partition(" ")[0] for letter in word if letter.isalpha()}
    return "LATIN" in scripts and bool(scripts & {"CYRILLIC", "GREEK", "ARMENIAN", "CHEROKEE", "COPTIC", "FULLWIDTH"})


def _escaped(word: str) -> str:
    return "".join(each if each.isascii() else f"\\u{ord(each):04x}" for each in word)
