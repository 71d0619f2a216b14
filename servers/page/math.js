// Math in Markdown: rules for `$…$`, `$$…$$`, `\(…\)` and `\[…\]`, and their display by KaTeX, which is loaded on use.

import { h } from "./dom.js";

const INLINE = [["$$", "$$", true], ["$", "$", false], ["\\(", "\\)", false], ["\\[", "\\]", true]]; // open, close, display
const BLOCK = [["$$", "$$"], ["\\[", "\\]"]];
const LONGEST = 4000; // characters of a formula
const UNSTYLED = /\\(fcolorbox|pmb)\b/; // KaTeX writes a style attribute into the MathML of these, which the policy refuses
let katex = null;

/** Add the rules to a parser; tokens `math` have the source as content and `meta.display`. */
export function mathRules(md) {
  md.inline.ruler.before("escape", "math", inlineMath);
  md.block.ruler.before("fence", "math", blockMath, { alt: ["paragraph", "reference", "blockquote", "list"] });
}

function inlineMath(state, silent) {
  const { src, pos, posMax } = state;
  const [open, close, display] = INLINE.find(([each]) => src.startsWith(each, pos)) ?? [];
  if (!open) return false;
  const begin = pos + open.length;
  let end = src.indexOf(close, begin);
  while (open === "$" && end > begin && src[end - 1] === "\\") end = src.indexOf(close, end + 1);
  if (end < 0 || end + close.length > posMax || end - begin > LONGEST) return false;
  const inside = src.slice(begin, end);
  if (!inside.trim() || inside.includes("\n\n")) return false;
  if (open === "$" && (/^\s|\s$/.test(inside) || /\d/.test(src[end + 1] ?? ""))) return false; // an amount of money
  if (!silent) push(state, inside, display);
  state.pos = end + close.length;
  return true;
}

function blockMath(state, begin, last, silent) {
  const lineOf = (line) => state.src.slice(state.bMarks[line] + state.tShift[line], state.eMarks[line]);
  const first = lineOf(begin).trimEnd();
  const [open, close] = BLOCK.find(([each]) => first.startsWith(each)) ?? [];
  if (!open || state.sCount[begin] - state.blkIndent >= 4) return false;
  const lines = [];
  let line = begin;
  for (let text = first.slice(open.length); ; text = lineOf(line).trimEnd()) {
    if (text.endsWith(close)) {
      lines.push(text.slice(0, -close.length));
      break;
    }
    if (text.includes(close)) return false; // words follow on the same line
    lines.push(text);
    line += 1;
    if (line >= last || state.sCount[line] < state.blkIndent) return false;
  }
  const inside = lines.join("\n");
  if (!inside.trim() || inside.length > LONGEST) return false;
  if (!silent) {
    push(state, inside, true).map = [begin, line + 1];
    state.line = line + 1;
  }
  return true;
}

function push(state, source, display) {
  const token = state.push("math", "", 0);
  token.content = source;
  token.meta = { display };
  return token;
}

/** Build the element of a formula. Its source is shown until KaTeX is loaded, and if the formula has an error. */
export function mathOf({ content, meta }) {
  const element = h(meta.display ? "div" : "span", { class: meta.display ? "math display" : "math" }, content);
  if (katex) typeset(element, content, meta.display);
  else load().then(() => typeset(element, content, meta.display), () => {});
  return element;
}

let loading = null;

function load() {
  loading ??= import("./vendor/katex.js").then(() => {
    ({ katex } = globalThis);
    document.head.append(h("link", { rel: "stylesheet", href: "page/vendor/katex.css" }));
  }).catch((error) => {
    loading = null; // the next formula tries again
    throw error;
  });
  return loading;
}

function typeset(element, source, display) {
  try {
    katex.render(source, element, {
      displayMode: display,
      output: UNSTYLED.test(source) ? "html" : "htmlAndMathml",
      strict: "ignore",
      trust: false,
      maxSize: 20,
      maxExpand: 500,
    });
  } catch (error) {
    element.replaceChildren(source);
    element.classList.add("wrong");
    element.title = error.message;
  }
}
