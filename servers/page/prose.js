// What an agent says, as elements: paragraphs, lists, code, emphasis, links. Text stays text, whatever it looks like.

import { h, icon, ticking } from "./dom.js";
import { size, text } from "./format.js";
import { timeLeft } from "./media.js";
import { relay } from "./net.js";

const FENCE = /^```/;
const ITEM = /^\s*(?:[-*•]|\d+[.)])\s+/;
const MEDIA = /^MEDIA:(\S+)\s*$/;
const INLINE = /(`[^`\n]+`|\*\*[^*\n]+\*\*|https?:\/\/[^\s<>"')\]]+)/;

/** The nodes of a text. */
export function prose(source) {
  const nodes = [];
  const lines = source.split("\n");
  let at = 0;
  while (at < lines.length) {
    const line = lines[at];
    if (FENCE.test(line)) {
      let end = at + 1;
      while (end < lines.length && !FENCE.test(lines[end])) end += 1;
      nodes.push(h("pre", { tabindex: "0" }, h("code", {}, lines.slice(at + 1, end).join("\n"))));
      at = end + 1;
    } else if (MEDIA.test(line)) {
      nodes.push(mediaCard(MEDIA.exec(line)[1]));
      at += 1;
    } else if (ITEM.test(line)) {
      const items = [];
      while (at < lines.length && (ITEM.test(lines[at]) || (/^\s{2,}\S/.test(lines[at]) && items.length))) {
        if (ITEM.test(lines[at])) items.push(lines[at].replace(ITEM, ""));
        else items.push(`${items.pop()} ${lines[at].trim()}`);
        at += 1;
      }
      nodes.push(h("ul", {}, items.map((item) => h("li", {}, inline(item)))));
    } else if (line.trim() === "") at += 1;
    else {
      const begin = at;
      while (at < lines.length && lines[at].trim() && !FENCE.test(lines[at]) && !ITEM.test(lines[at]) && !MEDIA.test(lines[at])) at += 1;
      nodes.push(h("p", {}, lines.slice(begin, at).flatMap((each, n) => [n ? h("br") : null, ...inline(each)])));
    }
  }
  return nodes;
}

function inline(source) {
  return source.split(INLINE).map((piece) => {
    if (/^`[^`]+`$/.test(piece)) return h("code", {}, piece.slice(1, -1));
    if (/^\*\*[^*]+\*\*$/.test(piece)) return h("strong", {}, piece.slice(2, -2));
    if (/^https?:\/\//.test(piece)) return h("a", { href: piece, rel: "noopener noreferrer", target: "_blank" }, piece);
    return piece;
  });
}

/** A file for the phone: this page cannot fetch it, since it has no session, but knows of it what the inspector tells. */
function mediaCard(where) {
  const token = /:\/\/(.+)$/.exec(where)?.[1];
  const about = h("div", { class: "sub" }, token ? `Token ${token.slice(0, 8)}` : "A file of the host");
  const name = h("strong", {}, token ? "A file for the phone" : where);
  const card = h("div", { class: "media-card" }, icon("file"), h("div", {}, name, about), h("a", { href: "#media" }, "Media"));
  if (token) {
    relay("GET", "/media").then((found) => {
      const entry = (found.media ?? []).find((each) => each.token === token);
      if (!entry) {
        about.textContent = "Its time is over";
        return;
      }
      name.textContent = text(entry.file_name);
      about.replaceChildren(`${text(entry.content_type)} · ${size(entry.size)} · `, ticking(h("span"), (each) => timeLeft(each, entry)));
    }).catch(() => {});
  }
  return card;
}
