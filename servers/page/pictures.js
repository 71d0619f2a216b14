// Pictures and text files: taken from the person for a message, and drawn where a message has them.

import { h, icon } from "./dom.js";
import { size } from "./format.js";

export const PICTURES = ["image/png", "image/jpeg", "image/gif", "image/webp"];
const MOST = 6_500_000; // bytes of all files of a message: in base64, with all else, a body has 10 MB
const LONGEST = 200_000; // bytes of a text file
const WIDEST = 640; // px of a picture that is drawn

/** The files that go with the next message. `onProblem(words)` when one cannot be taken. */
export class Attachments {
  #files = [];
  #onProblem;

  constructor(onProblem) {
    this.#onProblem = onProblem;
    this.element = h("ul", { class: "attached", "aria-label": "Attached", hidden: true });
    const input = h("input", { type: "file", multiple: true, hidden: true, "aria-label": "Files to attach" });
    input.addEventListener("change", () => {
      this.add(input.files);
      input.value = "";
    });
    this.button = h("button", { type: "button", class: "quiet round", "aria-label": "Attach pictures or text files", title: "Attach", onclick: () => input.click() }, icon("clip"), input);
    input.addEventListener("click", (event) => event.stopPropagation());
  }

  get count() {
    return this.#files.length;
  }

  /** Take what can be sent of these files. */
  async add(files) {
    for (const file of [...files]) { // the list is emptied as soon as its event is over
      const taken = await this.#read(file).catch(() => `${file.name} cannot be read.`);
      if (typeof taken === "string") this.#onProblem(taken);
      else this.#files.push(taken);
    }
    this.#show();
  }

  /** A message of these words with what is attached, as the API takes it; nothing is attached any more. */
  message(words) {
    const parts = this.#files.map(({ part }) => part);
    this.#files = [];
    this.#show();
    return parts.length ? [...(words.trim() ? [{ type: "text", text: words }] : []), ...parts] : words;
  }

  async #read(file) {
    const before = this.#files.reduce((sum, each) => sum + each.size, 0);
    if (before + file.size > MOST) return `${file.name} is too large: a message holds ${size(MOST)} of files.`;
    if (PICTURES.includes(file.type)) {
      const url = await dataUrl(file);
      return { name: file.name, size: file.size, part: { type: "image_url", image_url: { url } } };
    }
    if (file.size > LONGEST) return `${file.name} is too large: a text file may have ${size(LONGEST)}.`;
    const words = new TextDecoder("utf-8", { fatal: true });
    let text;
    try {
      text = words.decode(await file.arrayBuffer());
    } catch {
      return `${file.name} is neither a picture (PNG, JPEG, GIF, WebP) nor text.`;
    }
    return { name: file.name, size: file.size, part: { type: "text", text: `${file.name}:\n\n${text}` } };
  }

  #show() {
    this.element.hidden = !this.#files.length;
    this.element.replaceChildren(...this.#files.map((each) => h("li", {}, icon("file"), h("span", { class: "name" }, each.name), h("small", {}, size(each.size)),
      h("button", { type: "button", class: "quiet round small", "aria-label": `Leave out ${each.name}`, onclick: () => {
        this.#files = this.#files.filter((other) => other !== each);
        this.#show();
      } }, icon("cross")))));
  }
}

/** A picture that a message holds. It is drawn, and not linked: this page asks nobody else, and what it shows is no markup. */
export function drawn(url) {
  const [, kind, packed] = /^data:(image\/[\w.+-]+);base64,(.+)$/s.exec(url) ?? [];
  if (!PICTURES.includes(kind)) return h("span", {}, "[a picture of another place]");
  const canvas = h("canvas", { role: "img", "aria-label": "Attached picture", class: "shot", width: 1, height: 1 });
  show(canvas, kind, packed).catch(() => canvas.replaceWith("[a picture that cannot be shown]"));
  return canvas;
}

async function show(canvas, kind, packed) {
  const bytes = Uint8Array.from(atob(packed.replaceAll(/\s/g, "")), (sign) => sign.charCodeAt(0));
  const picture = await createImageBitmap(new Blob([bytes], { type: kind }));
  const scale = Math.min(1, WIDEST / picture.width);
  canvas.width = Math.max(1, Math.round(picture.width * scale));
  canvas.height = Math.max(1, Math.round(picture.height * scale));
  canvas.getContext("2d").drawImage(picture, 0, 0, canvas.width, canvas.height);
}

function dataUrl(file) {
  return new Promise((done, failed) => {
    const reader = new FileReader();
    reader.onload = () => done(reader.result);
    reader.onerror = () => failed(reader.error);
    reader.readAsDataURL(file);
  });
}
