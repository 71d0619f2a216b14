// Growing Markdown text of the agent, drawn block by block. The parser is loaded with the first text.

import { h, reconcile } from "./dom.js";

const PAGE_LEVEL = 2; // of the heading of the tab

let markdown = null;
let loading = null;

/** Load the parser; text is drawn without it until then. */
export function loadMarkdown() {
  loading ??= import("./markdown.js").then((loaded) => { markdown = loaded; }, () => { loading = null; });
  return loading;
}

/** Set the levels of headings so that none is skipped: models begin with any, and readers move by them. */
function setLevels(element) {
  const above = []; // headings around the next one: { own, level }
  for (const each of element.querySelectorAll("h3, h4, h5, h6")) {
    const own = Number(each.localName[1]);
    while (above.length && above.at(-1).own >= own) above.pop();
    const level = (above.at(-1)?.level ?? PAGE_LEVEL) + 1;
    above.push({ own, level });
    if (level === own) each.removeAttribute("aria-level");
    else each.setAttribute("aria-level", level);
  }
}

/** Draws a growing text. Finished blocks keep their elements, so that selections stay and files are requested once. */
export class Prose {
  #blocks = []; // { key, node }
  #settled = 0; // number of blocks that no further text changes
  #offset = 0; // characters of these blocks
  #text = "";
  #links = {}; // link definitions and footnotes
  #wanted = null;

  /** Draw `source` in `element`; `growing` if more text may follow. */
  draw(element, source, growing = false) {
    const waits = this.#wanted !== null;
    this.#wanted = [element, source, growing];
    if (!markdown) {
      element.replaceChildren(h("p", { class: "raw" }, source));
      if (!waits) loadMarkdown().then(() => { if (markdown) this.draw(...this.#wanted); });
      return;
    }
    // A definition at the end changes links before it, so that the whole text is drawn once more.
    const anew = !growing || !source.startsWith(this.#text.slice(0, this.#offset));
    if (anew) {
      this.#settled = this.#offset = 0;
      this.#links = {};
    }
    this.#text = source;
    const blocks = markdown.blocksOf(source.slice(this.#offset), this.#links, growing);
    const keeps = growing || !markdown.hasDefinitions(this.#links);
    const fresh = blocks.map((block, place) => {
      const key = `${place < blocks.length - 1 || !growing} ${block.source}`;
      const known = this.#blocks[this.#settled + place];
      const same = keeps && known?.shape === block.shape && (known.key === key || (!block.changesAtEnd && known.source === block.source));
      return same ? { ...known, key } : { key, shape: block.shape, source: block.source, nodes: markdown.nodesOf(block, place < blocks.length - 1 || !growing) };
    });
    this.#blocks = [...this.#blocks.slice(0, this.#settled), ...fresh];
    reconcile(element, this.#blocks.flatMap((each) => each.nodes));
    setLevels(element);
    if (blocks.length > 1) {
      this.#settled += blocks.length - 1;
      this.#offset += blocks.at(-1).begin;
    }
  }
}
