"""Patterns for the error texts of model servers: the words for refused parts of a request, and the named limits."""

import re

__all__ = [
    "CONTEXT",
    "CONTEXT_LIMITS",
    "CONTEXT_SIZES",
    "IMAGES",
    "MISSING",
    "NEW_OUTPUT_NAME",
    "OUTPUT_TOO_LARGE",
    "REASONING",
    "ROLE_ORDER",
    "STREAM",
    "SYSTEM_ROLE",
    "TOOLS",
    "TOOL_COUNT",
    "TOOL_COUNTS",
    "TOOL_IDS",
    "UNKNOWN",
]

NUMBER = r"(\d{1,3}(?:,\d{3})+|\d+)"


def _words(*patterns: str) -> re.Pattern[str]:
    return re.compile("|".join(patterns), re.IGNORECASE | re.DOTALL)


TOOLS = _words(
    r"tools?\b",
    r"tool[_ ]?(?:use|call|choice)",
    r"functions?\b",
    r"function[_ ]?call",
    "工具|函数|函數|ツール|関数|도구|함수",
    r"werkzeug|funktion|\boutils?\b|\bfonctions?\b|herramienta|funci[oó]n|ferramenta|fun[cç][aã]o",
    r"strument[oi]|funzion[ei]|инструмент|функци",
)
CONTEXT = _words(
    r"context[ _-]?(?:length|size|window|limit)",
    r"exceed_context|n_ctx\b|max(?:imum)?[ _]model[ _]len|maximum context|string_above_max_length",
    r"(?:prompt|input|request|messages?|conversation|sequence) (?:is |are |was )?(?:too (?:long|large)|exceeds?)",
    r"too many (?:input |prompt )?tokens|(?:prompt|input|request) length|`inputs` tokens",
    r"token (?:limit|count).{0,40}exceed|exceed.{0,60}(?:\btokens?\b|context)",
    r"tokens?.{0,40}(?:exceed|(?:larger|longer|greater) than)",
    r"reduce the (?:length|number|size)",
    r"上下文|コンテキスト長|kontext(?:l[äa]nge|fenster|gr[öo](?:ß|ss)e)|longueur (?:du |de )contexte",
    r"longitud (?:del |de )contexto|длин\w+ контекст",
)
OUTPUT_TOO_LARGE = _words(
    r"max(?:_completion|_output|_new)?_tokens.{0,80}(?:too (?:large|high|big)|at most|less than|<=|must be|exceed)",
    r"at most \d+ (?:completion|output) tokens",
)
TOOL_COUNT = _words(
    r"array_above_max_length|too many (?:tools|functions)",
    r"(?:tools|functions)\b.{0,80}(?:too (?:long|many)|maximum|at most|limit of|exceed|up to|more than)",
    rf"(?:at most|up to|maximum(?: of)?|limit of) {NUMBER} (?:tools|functions)",
    rf"{NUMBER} (?:tools|functions) (?:max|allowed)",
)
TOOL_IDS = _words(
    r"tool[_ ]?call[_ ]?ids?\b.{0,120}(?:length|a-z|must|match|pattern|invalid|alphanumeric|format|long|characters)",
    r"tool_calls?\[?\.?\d*\]?\.?id\b.{0,120}(?:length|pattern|invalid|must)|invalid_function_call",
)
MISSING = _words(
    "missing|requires?|required|must(?! be satisfied)|needs?\\b|not found|expected|has to|缺少|erforderlich|fehlt"
)
UNKNOWN = _words(
    "unknown|unrecogni[sz]ed|unexpected|unsupported|extra|additional|invalid|cannot|can't|forbidden|no such|ignored",
    r"not (?:permitted|allowed|supported|recogni[sz]ed|expected|valid|enabled|available|implemented)|not support",
    r"n't (?:support|allow|recogni[sz]e)|removed|disabled|no endpoints|不支持|未知|nicht unterst|unbekannt",
)
REASONING = _words("reasoning(?!_effort)|thinking|signature")
ROLE_ORDER = _words(
    r"alternat",
    r"roles? .{0,60}(?:order|sequence|follow|after)|consecutive|same role|two .{0,20}in a row",
    r"(?:expected|unexpected) (?:last )?role|(?:must|should) (?:start|begin|end) with (?:a |an )?(?:user|assistant)",
    r"(?:first|last) message (?:must|should)|first content should be with role|multiturn requests",
)
SYSTEM_ROLE = _words(
    r"system.{0,20}(?:role|message|prompt|instruction).{0,60}(?:not|n't|unsupported|invalid|must be at the|beginning)",
    r"developer instruction|role.{0,20}(?:system|developer).{0,60}(?:not|n't|unsupported|invalid)",
    r"only user(?:,| and) (?:model|assistant)|(?:invalid|unknown|unsupported) role:? .{0,3}(?:system|developer)",
)
IMAGES = _words(
    r"image|vision|multi-?modal|mmproj|picture|\bbild|图像|图片|画像|изображен|imagen",
    r"content.{0,40}(?:must be|expected|valid).{0,20}(?:str|string|text)\b|sequence, expected a string",
    r"content type.{0,20}not support",
)
NEW_OUTPUT_NAME = _words(r"\buse\b.{0,20}max_completion_tokens")
STREAM = _words(
    r"stream(?:ing)?\b.{0,40}(?:not|n't|unsupported|disabled|unavailable|must be false)|(?:not|n't) support stream"
)
CONTEXT_LIMITS = (
    _words(rf"n_ctx\D{{0,5}}{NUMBER}"),
    _words(
        r"(?:context(?:[ _-]?(?:length|size|window|limit))?|max(?:imum)?[ _]model[ _]len\w*|limit|maximum|up to|at most"
        rf"|max|supports?)\D{{0,40}}{NUMBER}"
    ),
    _words(rf"> ?{NUMBER} (?:maximum|max|tokens)"),
    _words(rf"{NUMBER} ?(?:tokens?)?\)? ?(?:maximum|context|limit)"),
)
CONTEXT_SIZES = (
    _words(rf"n_prompt_tokens\D{{0,5}}{NUMBER}"),
    _words(
        r"(?:request|prompt|input|messages?|resulted in|requested|you have|contains?|of)"
        rf"\D{{0,40}}{NUMBER} ?(?:input )?tokens"
    ),
    _words(rf"{NUMBER} tokens? (?:>|exceed|in (?:the|your) (?:prompt|messages))"),
)
TOOL_COUNTS = (
    _words(rf"(?:maximum length|at most|limit of|up to|maximum(?: of| is)?|more than|max)\D{{0,20}}{NUMBER}"),
    _words(rf"{NUMBER} (?:tools|functions)"),
)
