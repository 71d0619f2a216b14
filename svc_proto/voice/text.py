"""Text made fit to be spoken: what Markdown and tools leave in an answer is taken out (wire terminal-voice 3.4)."""

from __future__ import annotations

import re

__all__ = ["clean_for_speech"]


_TOOL_EMOJI = "🔧🔨🛠⚙🔍🔎💻🖥📄📁📂📝📋📦🌐🔗📎🧠🐍⚡⏳⌛✅❌⚠🚀💡🤖📱🎯🔊🎙"
_SELECTORS = "\ufe0e\ufe0f\u200d"  # that follow an emoji
_EMOJI = re.compile(f"[{_TOOL_EMOJI}][{_SELECTORS}]*")
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")  # a synthesizer takes a NUL for the end of the text
_FENCE = re.compile(r"(```|~~~)[\s\S]*?(?:\1|\Z)")
_TOOL_TOKEN = re.compile(f"`[{_TOOL_EMOJI}][^`\n]*`")
_LINK = re.compile(r"!?\[([^\[\]\n]*)\]\([^()\s]*(?:\([^()\s]*\)[^()\s]*)?(?:\s+\"[^\"\n]*\")?\)")
_URL = re.compile(r"<?\b(?:https?|ftp|wss?)://[^\s<>]+>?|\bwww\.[^\s<>]+", re.IGNORECASE)
_RULE = re.compile(r"^[ \t]*(?:-[ \t]*){3,}$|^[ \t]*(?:\*[ \t]*){3,}$|^[ \t]*(?:_[ \t]*){3,}$", re.MULTILINE)
_HEADING = re.compile(r"^[ \t]{0,3}#{1,6}[ \t]+", re.MULTILINE)
_BULLET = re.compile(r"^[ \t]*[-*+][ \t]+", re.MULTILINE)
_STRONG = re.compile(r"(\*\*|__)(?=\S)([^\n]*?\S)\1")
_EMPHASIS = re.compile(
    r"(?<![\w*])\*(?=[^\s*])([^*\n]*[^\s*])\*(?![\w*])|(?<![\w_])_(?=[^\s_])([^_\n]*[^\s_])_(?![\w_])"
)
_CODE = re.compile(r"`([^`\n]*)`")
_MANY_LINES = re.compile(r"\n{3,}")
_BLANKS = re.compile(r"[ \t]{2,}")
_LINE_ENDS = re.compile(r"[ \t]+$", re.MULTILINE)


def clean_for_speech(text: str) -> str:
    """What a voice should say of a text; empty when nothing is left."""
    text = _CONTROL.sub(" ", text.replace("\r\n", "\n").replace("\r", "\n"))
    text = _FENCE.sub(" ", text)
    text = _TOOL_TOKEN.sub("", text)
    text = _LINK.sub(r"\1", text)
    text = _URL.sub("", text)
    text = _RULE.sub("", text)
    text = _HEADING.sub("", text)
    text = _BULLET.sub("", text)
    text = _STRONG.sub(r"\2", text)
    text = _EMPHASIS.sub(lambda found: found[1] or found[2], text)
    text = _CODE.sub(r"\1", text)
    text = _EMOJI.sub("", text)
    text = _LINE_ENDS.sub("", _BLANKS.sub(" ", text))
    return _MANY_LINES.sub("\n\n", text).strip()
