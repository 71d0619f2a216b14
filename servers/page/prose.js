// Elements from the agent's Markdown: headings, paragraphs, lists, quotes, code, emphasis, links. Text never becomes
// markup. Unsupported syntax, such as tables, is shown as text.

import { h, icon, reconcile, ticking } from "./dom.js";
import { size, text } from "./format.js";
import { timeLeft } from "./media.js";
import { pictureOf, relay } from "./net.js";
import { PICTURES } from "./pictures.js";

const FENCE = /^\s*```/;
const HEADING = /^#{1,6}\s+(.+)/;
const ITEM = /^\s*(?:[-*•]|(\d{1,9})[.)])\s+/;
const MEDIA = /^MEDIA:(?:(["'`])(\/.+)\1|(\/.*\S|\S+))\s*$/; // a path may contain blanks
const QUOTE = /^\s*>+\s?/;
const TABLE = /^\s*\|.*\|\s*$/;
const FILE = /^\/.+\.(png|jpe?g|gif|webp)$/i; // a picture on the host
const SPECIAL = [FENCE, HEADING, ITEM, MEDIA, QUOTE, TABLE];
const DEEPEST = 5; // depth of nested lists
const INLINE = /(`[^`\n]+`|\*\*[^*\n]+\*\*|\[[^\]\n]+\]\(https?:\/\/[^\s<>()]+\)|https?:\/\/[^\s<>"')\]]*[^\s<>"')\].,;:!?])/;

/** Draws a growing text. Unchanged blocks keep their elements, so that selections stay and files are requested once. */
export class Prose {
  #kept = [];

  /** Draw `source` in `element`. */
  draw(element, source) {
    this.#kept = blocks(source).map((block, place) => {
      const kept = this.#kept[place];
      return kept?.source === block.source && kept.make.name === block.make.name ? kept : { ...block, node: block.make(block.source) };
    });
    reconcile(element, this.#kept.map((each) => each.node));
  }
}

/** Split a text into blocks, each with the function that builds its element. */
function blocks(source) {
  const found = [];
  const lines = source.split("\n");
  let at = 0;
  const take = (make, belongs) => {
    const begin = at;
    do at += 1; while (at < lines.length && belongs(lines[at]));
    found.push({ make, source: lines.slice(begin, at).join("\n") });
  };
  while (at < lines.length) {
    const line = lines[at];
    if (FENCE.test(line)) {
      take(code, (each) => !FENCE.test(each));
      at += 1; // the closing fence
    } else if (MEDIA.test(line)) take(media, () => false);
    else if (HEADING.test(line)) take(heading, () => false);
    else if (TABLE.test(line)) take(table, (each) => TABLE.test(each));
    else if (QUOTE.test(line)) take(quote, (each) => QUOTE.test(each));
    else if (ITEM.test(line)) take(list, (each) => ITEM.test(each) || /^\s{2,}\S/.test(each));
    else if (line.trim() === "") at += 1;
    else take(paragraph, (each) => each.trim() && !SPECIAL.some((kind) => kind.test(each)));
  }
  return found;
}

// --- elements of blocks

const code = (source) => h("pre", { tabindex: "0" }, h("code", {}, source.split("\n").slice(1).join("\n")));
const media = (source) => mediaCard(MEDIA.exec(source)[2] ?? MEDIA.exec(source)[3]);
const heading = (source) => h("h3", {}, inline(HEADING.exec(source)[1]));
const table = (source) => h("pre", { tabindex: "0" }, source);
const quote = (source) => h("blockquote", {}, broken(source.split("\n").map((each) => each.replace(QUOTE, ""))));
const paragraph = (source) => h("p", {}, broken(source.split("\n")));
const list = (source) => listOf(source.split("\n"), 0, 1)[0];

/** Build the list that starts at a line; return it with the number of the line behind it. */
function listOf(lines, begin, depth) {
  const number = ITEM.exec(lines[begin])[1];
  const indent = lines[begin].search(/\S/);
  const items = [];
  let at = begin;
  while (at < lines.length) {
    const item = ITEM.exec(lines[at]);
    const deep = lines[at].search(/\S/);
    if (!item) {
      items.at(-1).append(" ", ...inline(lines[at].trim()));
      at += 1;
    } else if (deep > indent + 1 && items.length && depth < DEEPEST) {
      const [inner, next] = listOf(lines, at, depth + 1);
      items.at(-1).append(inner);
      at = next;
    } else if (deep < indent - 1 && depth > 1) break;
    else {
      items.push(h("li", {}, inline(lines[at].replace(ITEM, ""))));
      at += 1;
    }
  }
  return [number === undefined ? h("ul", {}, items) : h("ol", { start: number }, items), at];
}

function broken(lines) {
  return lines.flatMap((each, n) => [n ? h("br") : null, ...inline(each)]);
}

function inline(source) {
  return source.split(INLINE).map((piece) => {
    if (/^`[^`]+`$/.test(piece)) return h("code", {}, piece.slice(1, -1));
    if (/^\*\*[^*]+\*\*$/.test(piece)) return h("strong", {}, piece.slice(2, -2));
    const [, words, where] = /^\[(.+)\]\((https?:.+)\)$/.exec(piece) ?? [null, piece, piece];
    if (/^https?:\/\//.test(where)) return h("a", { href: where, title: where, rel: "noopener noreferrer", target: "_blank" }, words);
    return piece;
  });
}

/** Build the card of a file for the phone, with the picture itself if the file is one. */
function mediaCard(where) {
  const token = /:\/\/(.+)$/.exec(where)?.[1];
  const about = h("div", { class: "sub" }, token ? `Token ${token.slice(0, 8)}` : "A file of the host");
  const name = h("strong", { class: "name" }, token ? "A file for the phone" : where);
  const card = h("div", { class: "media-card" }, icon("file"), h("div", {}, name, about), h("a", { href: "#media" }, "Media"));
  if (token) {
    relay("GET", "/media").then((found) => {
      const entry = (found.media ?? []).find((each) => each.token === token);
      if (!entry) {
        about.textContent = "Expired";
        return;
      }
      name.textContent = text(entry.file_name);
      about.replaceChildren(`${text(entry.content_type)} · ${size(entry.size)} · `, ticking(h("span"), (each) => timeLeft(each, entry)));
      if (PICTURES.includes(entry.content_type)) card.after(shot(token, text(entry.file_name)));
    }).catch(() => {});
  }
  if (!token && FILE.test(where)) card.lastChild.replaceWith(showing(where, card, about));
  return h("div", { class: "media-of" }, card);
}

/** Build the button that registers and shows a picture on the host: opening a chat alone creates no media tokens. */
function showing(path, card, about) {
  const button = h("button", { type: "button", class: "quiet" }, "Show");
  button.addEventListener("click", async () => {
    button.disabled = true;
    try {
      card.after(shot((await relay("POST", "/media", { path })).token, path));
    } catch (error) {
      about.textContent = error.message;
    }
    button.remove();
  });
  return button;
}

function shot(token, name) {
  const picture = h("img", { class: "shot", src: pictureOf(token), alt: name });
  picture.addEventListener("error", () => picture.remove());
  return picture;
}
