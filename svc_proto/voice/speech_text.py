"""Cleaning of text for speech: removes the marks of Markdown and tools from an answer (wire terminal-voice 3.4)."""

import re
from collections.abc import Callable

__all__ = ["clean_for_speech"]


_TOOL_EMOJI = "🔧🔨🛠⚙🔍🔎💻🖥📄📁📂📝📋📦🌐🔗📎🧠🐍⚡⏳⌛✅❌⚠🚀💡🤖📱🎯🔊🎙"
_SELECTORS = "\ufe0e\ufe0f\u200d"  # that follow an emoji
_EMOJI = f"[{_TOOL_EMOJI}]"
_EMPHASIS = r"(?<![\w*])\*(?=[^\s*])([^*\n]*[^\s*])\*(?![\w*])|(?<![\w_])_(?=[^\s_])([^_\n]*[^\s_])_(?![\w_])"
# Patterns and replacements; each sees the result of those before it.
_REPLACED: dict[str, str | Callable[[re.Match[str]], str]] = {
    r"\r\n?": "\n",
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f]": " ",  # a synthesizer takes a NUL for the end of the text
    r"(```|~~~)[\s\S]*?(?:\1|\Z)": " ",
    f"`{_EMOJI}[^`\n]*`": "",
    r"!?\[([^\[\]\n]*)\]\([^()\s]*(?:\([^()\s]*\)[^()\s]*)?(?:\s+\"[^\"\n]*\")?\)": r"\1",  # a link
    r"(?i)<?\b(?:https?|ftp|wss?)://[^\s<>]+>?|\bwww\.[^\s<>]+": "",
    r"(?m)^[ \t]*(?:(?:-[ \t]*){3,}|(?:\*[ \t]*){3,}|(?:_[ \t]*){3,})$": "",  # a rule
    r"(?m)^[ \t]{0,3}#{1,6}[ \t]+": "",  # a heading
    r"(?m)^[ \t]*[-*+][ \t]+": "",  # a bullet
    r"(\*\*|__)(?=\S)([^\n]*?\S)\1": r"\2",
    _EMPHASIS: lambda found: found[1] or found[2],
    r"`([^`\n]*)`": r"\1",
    f"{_EMOJI}[{_SELECTORS}]*": "",
    r"[ \t]{2,}": " ",
    r"(?m)[ \t]+$": "",
    r"\n{3,}": "\n\n",
}
_ROWS = [(re.compile(pattern), words) for pattern, words in _REPLACED.items()]


def clean_for_speech(text: str) -> str:
    """Return a text without code blocks, URLs and the marks of Markdown and tools; empty if nothing is left."""
    for pattern, words in _ROWS:
        text = pattern.sub(words, text)
    return text.strip()
