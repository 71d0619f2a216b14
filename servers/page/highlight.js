// Colours of code by highlight.js, which is loaded with a language on its first use.

import { h } from "./dom.js";

const LONGEST = 40_000; // characters; longer code keeps one colour
const FILES = [ // a language's file, and its other names
  "bash sh shell zsh console", "c h", "cpp c++ cc hpp", "csharp cs c#", "css scss less", "diff patch", "dockerfile docker", "go golang",
  "ini toml conf", "java", "javascript js jsx mjs", "json json5 jsonc", "kotlin kt", "lua", "makefile make mk", "markdown md", "php",
  "powershell ps1 pwsh", "python py python3", "ruby rb", "rust rs", "sql sqlite postgresql mysql", "swift", "typescript ts tsx",
  "xml html svg xhtml", "yaml yml",
];
const LANGUAGES = new Map(FILES.flatMap((row) => row.split(" ").map((name) => [name, row.split(" ")[0]])));
const loaded = new Map(); // promise of highlight.js with the language, by language

/** Colour a `code` element whose text is `source`; without effect for unknown languages. */
export async function highlight(element, source, name) {
  const language = LANGUAGES.get(name.toLowerCase());
  if (!language || source.length > LONGEST) return;
  if (!loaded.has(language)) loaded.set(language, load(language));
  try {
    const answer = (await loaded.get(language)).highlight(source, { language, ignoreIllegals: true });
    element.replaceChildren(...answer._emitter.rootNode.children.map(nodeOf)); // its `value` is markup, which this page refuses
  } catch {
    loaded.delete(language); // the code stays as it is; the next one tries again
  }
}

async function load(language) {
  const [{ default: core }, { default: grammar }] = await Promise.all([
    import("./vendor/highlight.js"), import(`./vendor/languages/${language}.js`),
  ]);
  core.registerLanguage(language, grammar);
  return core;
}

function nodeOf(node) {
  if (typeof node === "string") return node;
  const names = node.scope ? node.scope.split(".").map((each, n) => (n ? each : `hljs-${each}`)) : [];
  return h("span", { class: names.join(" ") }, node.children.map(nodeOf));
}
