// Pictures and text files: attached to a message by the user, and drawn in messages.

import { h, icon } from "./dom.js";
import { size } from "./format.js";
import { t } from "./i18n.js";

export const PICTURES = ["image/png", "image/jpeg", "image/gif", "image/webp"];
const MOST = 6_500_000; // bytes of all files of a message: a body with them in base64 may have 10 MB
const LONGEST = 200_000; // bytes of a text file
const WIDEST = 640; // px of a drawn picture

/** The files of the next message. `onProblem(words)` is called for a file that cannot be attached. */
export class Attachments {
  #files = [];
  #onProblem;

  constructor(onProblem) {
    this.#onProblem = onProblem;
    this.element = h("ul", { class: "attached", "aria-label": t("Attached"), hidden: true });
    const input = h("input", { type: "file", multiple: true, hidden: true, "aria-label": t("Files to attach") });
    input.addEventListener("change", () => {
      this.add(input.files);
      input.value = "";
    });
    this.button = h("button", { type: "button", class: "quiet round", "aria-label": t("Attach pictures or text files"), title: t("Attach"), onclick: () => input.click() }, icon("clip"), input);
    input.addEventListener("click", (event) => event.stopPropagation());
    const shot = h("input", { type: "file", accept: "image/*", capture: "environment", hidden: true, "aria-label": t("Picture of the camera") });
    shot.addEventListener("change", () => {
      this.add(shot.files);
      shot.value = "";
    });
    shot.addEventListener("click", (event) => event.stopPropagation());
    this.camera = h("button", { type: "button", class: "quiet round camera", "aria-label": t("Take a picture"), title: t("Camera"), onclick: () => shot.click() }, icon("camera"), shot);
  }

  get count() {
    return this.#files.length;
  }

  /** Attach the files that can be sent. */
  async add(files) {
    for (const file of [...files]) { // copied, since the list is emptied after its event
      const taken = await this.#read(file).catch(() => t("{name} cannot be read.", { name: file.name }));
      if (typeof taken === "string") this.#onProblem(taken);
      else this.#files.push(taken);
    }
    this.#show();
  }

  /** Build a message of the text and the attached files in the API's format, and clear the attachments. */
  message(words) {
    const parts = this.#files.map(({ part }) => part);
    this.#files = [];
    this.#show();
    return parts.length ? [...(words.trim() ? [{ type: "text", text: words }] : []), ...parts] : words;
  }

  async #read(file) {
    const before = this.#files.reduce((sum, each) => sum + each.size, 0);
    if (before + file.size > MOST) return t("{name} is too large: a message holds {size} of files.", { name: file.name, size: size(MOST) });
    if (PICTURES.includes(file.type)) {
      const url = await dataUrl(file);
      return { name: file.name, size: file.size, url, part: { type: "image_url", image_url: { url } } };
    }
    if (file.size > LONGEST) return t("{name} is too large: a text file may have {size}.", { name: file.name, size: size(LONGEST) });
    const words = new TextDecoder("utf-8", { fatal: true });
    let text;
    try {
      text = words.decode(await file.arrayBuffer());
    } catch {
      return t("{name} is neither a picture (PNG, JPEG, GIF, WebP) nor text.", { name: file.name });
    }
    return { name: file.name, size: file.size, part: { type: "text", text: `${file.name}:\n\n${text}` } };
  }

  #show() {
    this.element.hidden = !this.#files.length;
    this.element.replaceChildren(...this.#files.map((each) => h("li", {}, each.url ? drawn(each.url, t("Preview")) : icon("file"), h("span", { class: "name" }, each.name), h("small", {}, size(each.size)),
      h("button", { type: "button", class: "quiet round small", "aria-label": t("Leave out {name}", { name: each.name }), onclick: () => {
        this.#files = this.#files.filter((other) => other !== each);
        this.#show();
      } }, icon("cross")))));
  }
}

/** Draw a picture of a message. Links are not followed: this page sends no request to other sites. */
export function drawn(url, label = t("Attached picture")) {
  const [, kind, packed] = /^data:(image\/[\w.+-]+);base64,(.+)$/s.exec(url) ?? [];
  if (!PICTURES.includes(kind)) return h("span", {}, t("[a picture from another site]"));
  const canvas = h("canvas", { role: "img", "aria-label": label, class: "shot", width: 1, height: 1 });
  show(canvas, kind, packed).catch(() => canvas.replaceWith(t("[a picture that cannot be shown]")));
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
