// Markdown as elements: CommonMark with tables, strikethrough, task lists, footnotes, math and files for the phone.
// markdown-it makes tokens, and this module builds elements from them: text never becomes markup.

import MarkdownIt from "./vendor/markdown-it.js";
import footnotes from "./vendor/markdown-it-footnote.js";
import { copyButton, h } from "./dom.js";
import { highlight } from "./highlight.js";
import { t } from "./i18n.js";
import { mathOf, mathRules } from "./math.js";
import { MEDIA, mediaCard } from "./media_card.js";

const SAFE = /^(https?:\/\/|mailto:)/i; // addresses that become links
const TASK = /^\[([ xX])\]\s+/;
const NESTED = 40; // depth of blocks and emphasis
const TOP = 2; // headings of a message are below those of the page

export const parser = new MarkdownIt({ html: false, linkify: true, maxNesting: NESTED }).use(footnotes).use(mathRules);
parser.linkify.set({ fuzzyLink: false, fuzzyEmail: false });
parser.validateLink = () => true; // checked below, where a refused link keeps its words
parser.block.ruler.before("fence", "media", mediaRule, { alt: ["paragraph", "reference", "blockquote", "list"] });
parser.core.ruler.after("inline", "tasks", taskRule);

/** Split a text into top-level blocks: `{ source, begin, shape, tokens }`; `shape` is the types of its tokens. `links` keeps definitions between calls. */
export function blocksOf(source, links, growing = false) {
  links.growing = growing;
  const starts = [0];
  for (let at = source.indexOf("\n"); at >= 0; at = source.indexOf("\n", at + 1)) starts.push(at + 1);
  const found = [];
  let depth = 0;
  for (const token of parser.parse(source, links)) {
    if (depth === 0) {
      const [first, last] = token.map ?? [starts.length, starts.length];
      const begin = starts[first] ?? source.length;
      found.push({ begin, source: source.slice(begin, starts[last] ?? source.length), tokens: [], shape: "", changesAtEnd: token.type === "fence" });
    }
    depth += token.nesting;
    found.at(-1).tokens.push(token);
    found.at(-1).shape += token.type;
  }
  return found;
}

/** Report whether definitions of links or footnotes were read. */
export function hasDefinitions(links) {
  return Object.keys(links.references ?? {}).length > 0 || Boolean(links.footnotes);
}

/** Build the elements of a block; code gets its colours when the block is `complete`. */
export function nodesOf({ tokens }, complete = true) {
  return build(tokens, complete);
}

function build(tokens, complete) {
  const open = [{ children: [] }]; // the root, then each opening token with what is inside it
  for (const token of tokens) {
    if (token.nesting === 1) {
      open.push({ token, children: [] });
      continue;
    }
    const made = token.nesting === -1 ? container(open.pop()) : token.type === "inline" ? build(token.children, complete) : leaf(token, complete);
    open.at(-1).children.push(...[made].flat().filter((each) => each !== null && each !== ""));
  }
  return open[0].children;
}

function container({ token, children }) {
  if (token.hidden) return children; // a paragraph of a tight list
  switch (token.type) {
    case "link_open": return linkTo(token.attrGet("href"), token.attrGet("title"), children);
    case "heading_open": return h(`h${Math.min(6, Number(token.tag[1]) + TOP)}`, {}, children);
    case "ordered_list_open": return h("ol", { start: token.attrGet("start") }, children);
    case "table_open": return h("div", { class: "sheet-of", tabindex: "0", role: "region", "aria-label": t("Table") }, h("table", {}, children));
    case "th_open": case "td_open": return h(token.tag, { class: token.attrGet("style")?.replace("text-align:", "to-") }, children);
    case "footnote_block_open": return h("section", { class: "footnotes", "aria-label": t("Footnotes") }, h("ol", {}, children));
    case "footnote_open": return h("li", { tabindex: "-1", "data-note": token.meta.id + 1 }, children);
    default: return h(token.tag, {}, children);
  }
}

function leaf(token, complete) {
  switch (token.type) {
    case "text": return token.content;
    case "softbreak": case "hardbreak": return h("br");
    case "hr": return h("hr");
    case "code_inline": return h("code", {}, token.content);
    case "code_block": return codeOf(token.content, "", complete);
    case "fence": return codeOf(token.content, token.info.trim().split(/\s+/)[0], complete);
    case "image": return linkTo(token.attrGet("src"), token.attrGet("title"), [parser.renderer.renderInlineAsText(token.children, parser.options, {}) || t("Picture")]);
    case "math": return mathOf(token);
    case "media": return mediaCard(token.content);
    case "task": return h("span", { class: "task", role: "img", "aria-label": token.meta ? t("Done:") : t("To do:") }, token.meta ? "☑" : "☐");
    case "footnote_ref": return noteButton(`${token.meta.id + 1}`);
    case "footnote_anchor": return null;
    default: return token.content;
  }
}

/** Build a link to another site or a mail address; only the words of any other link. */
function linkTo(address, title, words) {
  if (!SAFE.test(address)) return words;
  return h("a", { href: address, title: title ?? address, rel: "noopener noreferrer", target: "_blank" }, words);
}

function codeOf(source, language, complete) {
  const code = h("code", {}, source);
  if (complete && language) highlight(code, source, language);
  const copy = copyButton(source, "", { "aria-label": t("Copy this code"), title: t("Copy") });
  return h("div", { class: "code" }, h("div", { class: "code-head" }, h("span", {}, language), copy), h("pre", { tabindex: "0" }, code));
}

function noteButton(number) {
  const button = h("button", { type: "button", class: "note-link", "aria-label": t("Footnote {number}", { number }) }, number);
  button.addEventListener("click", () => {
    const note = button.closest(".prose")?.querySelector(`[data-note="${number}"]`);
    note?.scrollIntoView({ block: "nearest" });
    note?.focus({ preventScroll: true });
  });
  return h("sup", {}, button);
}

function mediaRule(state, line, last, silent) {
  const end = state.eMarks[line];
  const found = MEDIA.exec(state.src.slice(state.bMarks[line] + state.tShift[line], end));
  if (!found || (state.env.growing && end >= state.src.trimEnd().length && !/\n\s*$/.test(state.src))) return false;
  if (!silent) {
    const token = state.push("media", "", 0);
    token.content = found[2] ?? found[3];
    token.map = [line, line + 1];
    state.line = line + 1;
  }
  return true;
}

function taskRule(state) {
  state.tokens.forEach((token, place) => {
    const first = token.children?.[0];
    const found = token.type === "inline" && state.tokens[place - 2]?.type === "list_item_open" && TASK.exec(first?.content ?? "");
    if (!found || first.type !== "text") return;
    first.content = first.content.slice(found[0].length);
    const box = new state.Token("task", "", 0);
    box.meta = found[1] !== " ";
    token.children.unshift(box, Object.assign(new state.Token("text", "", 0), { content: " " }));
  });
}
