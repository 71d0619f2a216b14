// Settings: the model of the agent with a test, defaults for new devices, the voice, the looks of this page.

import { announce, h, put } from "./dom.js";
import { plain, text } from "./format.js";
import { hostBlock } from "./host_settings.js";
import { LANGUAGES, languageSetting, locale, setLanguage, t } from "./i18n.js";
import { inviteBlock } from "./invite_options.js";
import { agent, probe } from "./net.js";
import { setTheme, theme, THEMES } from "./theme.js";
import { badge } from "./view.js";
import { voiceBlock } from "./voice_sample.js";

const MAX_TEXT = 256; // characters, as in the API

export function openSettings(room) {
  const closing = new AbortController();
  room.classList.replace("settings", "settings-of"); // `settings` is the class of a form
  room.append(modelBlock(closing.signal), inviteBlock(closing.signal), voiceBlock(closing.signal), looksBlock(), hostBlock(closing.signal));
  return { close: () => closing.abort() };
}

function modelBlock(signal) {
  const now = h("p", { class: "lead" });
  const url = h("input", { type: "url", placeholder: "http://127.0.0.1:11434/v1", autocomplete: "off", maxlength: MAX_TEXT, spellcheck: "false" });
  const names = h("datalist", { id: "models" });
  const name = h("input", { list: "models", autocomplete: "off", maxlength: MAX_TEXT, spellcheck: "false" });
  const list = h("button", { type: "button", onclick: () => look() }, t("List the models"));
  const test = h("button", { type: "button", onclick: () => look(true) }, t("Test"));
  const save = h("button", { type: "submit", class: "main" }, t("Save"));
  const found = h("div", { class: "found", role: "status" });
  const problem = h("p", { class: "problem", role: "alert", hidden: true });
  const form = h("form", { class: "settings", autocomplete: "off" }, now, problem,
    h("label", { class: "field" }, h("span", {}, t("Address of an OpenAI-compatible server, up to /v1 (empty: as it is)")), url),
    h("label", { class: "field" }, h("span", {}, t("Model")), name), names,
    h("div", { class: "actions" }, list, test, save), found,
    h("p", { class: "sub" }, t("A key for the server is set on the host with: svc model --ask-key")));

  async function run(button, words, act) {
    const title = button.textContent;
    for (const each of [list, test, save]) each.disabled = true;
    put(button, words);
    problem.hidden = true;
    try {
      await act();
    } catch (error) {
      if (!signal.aborted) fail(error.message);
    }
    put(button, title);
    for (const each of [list, test, save]) each.disabled = false;
  }

  function fail(words) {
    put(problem, words);
    problem.hidden = false;
  }

  function look(tries = false) {
    if (tries && !name.value.trim()) {
      fail(t("Choose a model first."));
      return null;
    }
    return run(tries ? test : list, t("Asking…"), async () => {
      const body = { ...(url.value.trim() ? { base_url: url.value.trim() } : {}), ...(tries ? { model: name.value.trim() } : {}) };
      const answer = await probe(body, signal);
      const models = Array.isArray(answer.models) ? answer.models.map(text) : [];
      names.replaceChildren(...models.map((each) => h("option", { value: each })));
      if (!name.value && models.length === 1) [name.value] = models;
      if (answer.problem) fail(text(answer.problem));
      found.replaceChildren(...(tries && !answer.problem ? abilities(answer) : modelList(models)));
    });
  }

  function modelList(models) {
    return [h("p", {}, t("{count} models", { count: models.length })),
      h("ul", { class: "chips" }, models.map((each) => h("li", {}, h("button", { type: "button", class: "chip", onclick: () => { name.value = each; } }, plain(each)))))];
  }

  function abilities({ context, tools, seconds }) {
    return [badge("good", t("It answers")), ` ${t("after {seconds} s", { seconds: Number(seconds).toFixed(1) })}`,
      h("p", {}, typeof context === "number" ? t("Context: {count} tokens.", { count: context.toLocaleString(locale) }) : t("Context: unknown."), " ",
        tools === true ? t("It calls tools.") : tools === false ? t("It calls no tools, so it cannot use the phone.") : t("Whether it calls tools is unknown."))];
  }

  form.addEventListener("submit", (event) => {
    event.preventDefault();
    const change = { ...(url.value.trim() ? { base_url: url.value.trim() } : {}), ...(name.value.trim() ? { model: name.value.trim() } : {}) };
    if (!Object.keys(change).length) {
      fail(t("Choose a model first."));
      return;
    }
    run(save, t("Saving…"), async () => {
      const answer = await agent("PATCH", "/model", change, signal);
      if (change.model && answer.model !== change.model) {
        fail(t("Stored, but the environment of the server sets {model}: see SVC_MODEL and SVC_MODEL_BASE_URL.", { model: plain(text(answer.model)) }));
      } else announce(t("The model is changed"));
      await present();
    });
  });

  async function present() {
    const { chat, model } = await agent("GET", "/model", undefined, signal);
    form.inert = !chat;
    put(now, !chat ? t("The dashboard runs without an API server, so there is no model to set.")
      : model ? t("The agent uses {model}.", { model: plain(text(model)) }) : t("No model is connected: the built-in agent answers."));
  }

  present().catch((error) => { if (!signal.aborted) fail(error.message); });
  return h("section", { class: "block" }, h("div", { class: "heading" }, h("h3", {}, t("Model"))), form);
}

function looksBlock() {
  const themes = h("select", { onchange: () => setTheme(themes.value) }, THEMES.map(([name, title]) => h("option", { value: name, selected: name === theme() }, title)));
  const languages = h("select", {
    onchange: () => {
      setLanguage(languages.value);
      location.reload();
    },
  }, [["", t("As the browser")], ...LANGUAGES].map(([code, title]) => h("option", { value: code, selected: code === languageSetting() }, title)));
  return h("section", { class: "block" }, h("div", { class: "heading" }, h("h3", {}, t("This page"))),
    h("div", { class: "settings" }, h("label", { class: "field" }, h("span", {}, t("Theme")), themes),
      h("label", { class: "field" }, h("span", {}, t("Language")), languages)));
}
