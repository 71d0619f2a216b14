// Changes of Playwright for the Firefox of Debian, loaded into its Node process before it (`NODE_OPTIONS=--require`).

const { Module } = require("node:module");

const CHANGES = [
  // Firefox 153 has no such command, which Playwright sends for each page.
  ['"emulation.setMediaFeaturesOverride"', '"session.status"'],
  // Its events of a download that a page starts name neither the download nor a navigation.
  ["!event.download && !event.navigation", "!event.url"],
  ["event.download ?? event.navigation", "event.url"],
];

const compile = Module.prototype._compile;
Module.prototype._compile = function (text, name, ...rest) {
  if (name.endsWith("coreBundle.js")) for (const [old, changed] of CHANGES) text = text.replaceAll(old, changed);
  return compile.call(this, text, name, ...rest);
};
