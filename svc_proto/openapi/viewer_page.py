"""Viewer page of a server's OpenAPI document: one file, whose policy permits only its own script and style.

It loads only `openapi.json` beside it from its own server. Text is never interpreted as markup. The words of the page
itself are in the reader's language; the document is in English.
"""

from base64 import b64encode
from hashlib import sha256
from html import escape

from svc_proto.basics import strict_json
from svc_proto.engine.page_language import LANGUAGES, VARY, PageTexts
from svc_proto.engine.security_headers import page_security_headers
from svc_proto.engine.static_asset import StaticAsset

__all__ = ["PAGES"]

STYLE = """
:root { color-scheme: light dark; --line: light-dark(#dfe3dc, #2d3438); --soft: light-dark(#55615d, #9ba8aa);
  --accent: light-dark(#17605c, #74cbc1); --sunken: light-dark(#eef0eb, #15191b); }
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 60rem; padding: 1rem clamp(1rem, 3vw, 2rem) 4rem;
  background: light-dark(#f5f6f3, #121517); color: light-dark(#1b2422, #e6eaea);
  font: 0.9375rem/1.5 system-ui, sans-serif; }
h1 { font-size: 1.375rem; margin: 0.5rem 0; } h2 { font-size: 1.125rem; margin: 2rem 0 0.5rem; }
h3 { font-size: 0.9375rem; margin: 1rem 0 0.25rem; } p { margin: 0.25rem 0; }
code, pre { font: 0.8125rem/1.5 ui-monospace, monospace; }
pre { overflow-x: auto; padding: 0.625rem; border-radius: 6px; background: var(--sunken); margin: 0.25rem 0; }
.soft { color: var(--soft); }
.bar { position: sticky; top: 0; padding: 0.5rem 0; background: inherit; }
input { width: 100%; padding: 0.5rem 0.75rem; font: inherit; color: inherit; background: light-dark(#fff, #1a1e21);
  border: 1px solid light-dark(#8a948f, #6b767c); border-radius: 8px; }
details { border: 1px solid var(--line); border-radius: 8px; background: light-dark(#fff, #1a1e21); margin: 0.375rem 0;
  overflow-wrap: anywhere; scroll-margin-top: 4rem; }
summary { padding: 0.5rem 0.75rem; cursor: pointer; } details > div { padding: 0 0.75rem 0.75rem; }
.method { display: inline-block; min-width: 4.5em; font-weight: 600; color: var(--accent); }
:focus-visible { outline: 2px solid var(--accent); outline-offset: 2px; } a { color: var(--accent); }
[hidden] { display: none; }
"""
SCRIPT = """
"use strict";
const make = (name, members = {}, ...children) => {
  const node = Object.assign(document.createElement(name), members);
  node.append(...children);
  return node;
};
const WORDS = JSON.parse(document.querySelector("main").dataset.words);
const title = (name, text) => make(name, { lang: document.documentElement.lang, textContent: text });
const last = (reference) => reference.split("/").at(-1);
const link = (name) => make("a", { href: `#${name}`, textContent: name });
const METHODS = ["get", "head", "post", "put", "patch", "delete"];

/* A schema in one line of words and links. */
function brief(schema) {
  if (schema.$ref) return [link(last(schema.$ref))];
  if (schema.enum) return [schema.enum.map((value) => JSON.stringify(value)).join(" | ")];
  if (schema.anyOf) return schema.anyOf.flatMap((each, place) => (place ? [" | ", ...brief(each)] : brief(each)));
  if (schema.type === "array") return ["[", ...(schema.items ? brief(schema.items) : ["anything"]), "]"];
  if (schema.additionalProperties) return ["{name: ", ...brief(schema.additionalProperties), "}"];
  if (!schema.type) return ["anything"];
  return [[].concat(schema.type).join(" | ")];
}

function members(schema) {
  const needed = schema.required ?? [];
  return make("pre", {}, ...Object.entries(schema.properties ?? {}).flatMap(([name, inner]) => [
    `${name}${needed.includes(name) ? "" : "?"}: `, ...brief(inner),
    inner.description ? `    ${inner.description}\\n` : "\\n",
  ]));
}

function content(found) {
  return Object.entries(found ?? {}).flatMap(([media, { schema, "x-events": events }]) => [
    make("pre", {}, `${media}  `, ...brief(schema), ...Object.entries(events ?? {}).flatMap(
      ([name, data]) => [`\\n  event ${name}: `, ...brief(data)])),
  ]);
}

function operation(path, method, told, shared) {
  const body = make("div", {}, ...told.description.split("\\n\\n").map((text) => make("p", { textContent: text })));
  const asked = (told.parameters ?? []).map((each) => make("pre", {},
    `${each.in} ${each.name}${each.required ? "" : "?"}: `, ...brief(each.schema),
    `    ${each.description ?? each.schema.description ?? ""}`));
  if (asked.length || told.requestBody) {
    body.append(title("h3", WORDS.request), ...asked, ...content(told.requestBody?.content));
  }
  body.append(title("h3", WORDS.answers));
  for (const [status, answer] of Object.entries(told.responses)) {
    const whole = answer.$ref ? shared[last(answer.$ref)] : answer;
    const words = make("p", {}, make("code", { textContent: status }), ` ${whole.description}`);
    body.append(words, ...content(whole.content));
    for (const [side, each] of Object.entries(whole["x-messages"] ?? {})) {
      body.append(make("pre", {}, side, ...Object.entries(each).flatMap(
        ([name, data]) => [`\\n  ${name}: `, ...brief(data)])));
    }
  }
  return make("details", { id: told.operationId },
    make("summary", {}, make("span", { className: "method", textContent: method.toUpperCase() }),
      make("code", { textContent: path }), make("span", { className: "soft", textContent: ` ${told.summary}` })), body);
}

function show(told) {
  const main = document.querySelector("main");
  document.title = told.info.title;
  document.querySelector("h1").textContent = `${told.info.title} ${told.info.version}`;
  main.append(make("p", { textContent: told.info.description }));
  for (const { name } of told.tags) {
    const section = make("section", {}, make("h2", { textContent: name }));
    for (const [path, item] of Object.entries(told.paths)) {
      for (const method of METHODS) {
        if (item[method]?.tags[0] === name) {
          section.append(operation(path, method, item[method], told.components.responses));
        }
      }
    }
    main.append(section);
  }
  const shapes = make("section", {}, title("h2", WORDS.shapes));
  for (const [name, schema] of Object.entries(told.components.schemas)) {
    const words = make("span", { className: "soft", textContent: ` ${schema.description ?? ""}` });
    const summary = make("summary", {}, make("code", { textContent: name }), words);
    shapes.append(make("details", { id: name }, summary, make("div", {}, members(schema))));
  }
  main.append(shapes);
  open();
}

function open() {
  const found = document.getElementById(decodeURIComponent(location.hash.slice(1)));
  if (found?.tagName === "DETAILS") { found.hidden = false; found.open = true; found.scrollIntoView(); }
}

function search(words) {
  const wanted = words.toLowerCase().split(/\\s+/).filter(Boolean);
  let count = 0;
  for (const section of document.querySelectorAll("section")) {
    let some = false;
    for (const each of section.querySelectorAll("details")) {
      const text = each.textContent.toLowerCase();
      each.hidden = !wanted.every((word) => text.includes(word));
      if (!each.hidden) { some = true; count += 1; }
    }
    section.hidden = !some;
  }
  document.querySelector("output").textContent = wanted.length ? WORDS.found.replace("{count}", count) : "";
}

document.querySelector("input").addEventListener("input", (event) => search(event.target.value));
addEventListener("hashchange", open);
fetch("openapi.json").then((answer) => {
  if (!answer.ok) throw new Error(`the server answered ${answer.status}`);
  return answer.json();
}).then(show).catch((error) => {
  document.querySelector("main").textContent = WORDS.problem.replace("{reason}", error.message);
});
"""


def _hash(text: str) -> bytes:
    """Return the hash of a script or style for a Content Security Policy (level 3) that permits exactly this text."""
    return b"'sha256-%s'" % b64encode(sha256(text.encode("utf-8")).digest())


POLICY = (
    b"default-src 'none'; script-src %s; style-src %s; img-src data:; connect-src 'self'; base-uri 'none'; "
    b"form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
) % (_hash(SCRIPT), _hash(STYLE))


def _page(texts: PageTexts) -> StaticAsset:
    """Return the page in one language. Its script reads the words from the page, so that it has one hash."""
    words = {
        "request": texts.html("Request"),
        "answers": texts.html("Answers"),
        "shapes": texts.html("Shapes"),
        "found": texts.html("{count} found", count="{count}"),
        "problem": texts.html("Not there: {reason}", reason="{reason}"),
    }
    html = f"""<!doctype html>
<html lang="{texts.language}">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>API</title>
<link rel="icon" href="data:,">
<style>{STYLE}</style>
</head>
<body>
<header>
<h1>API</h1>
<p><a href="openapi.json">openapi.json</a></p>
</header>
<div class="bar" role="search">
<input type="search" aria-label="{texts.html("Search routes and shapes")}" placeholder="{texts.html("Search")}">
<output class="soft"></output></div>
<main lang="en" data-words="{escape(strict_json.dumps(words))}"></main>
<script>{SCRIPT}</script>
</body>
</html>
"""
    return StaticAsset(b"text/html; charset=utf-8", html.encode("utf-8"), (*page_security_headers(POLICY), VARY))


PAGES = {language: _page(PageTexts(language)) for language in LANGUAGES}
"""The page by the code of its language."""
