() => {
  const found = new Set();
  for (const each of document.querySelectorAll("body *")) {
    for (const node of each.childNodes) if (node.nodeType === 3) found.add(node.data.trim());
    for (const name of ["aria-label", "title", "placeholder", "alt", "data-label"]) found.add(each.getAttribute(name));
  }
  return [...found].filter(Boolean);
}
