(bar) => [...bar.querySelectorAll(":scope > ul > li > :is(a, button)")].map((entry) => {
  const words = entry.querySelectorAll("span");
  const edges = ({ left, top, right, bottom }) => [left, top, right, bottom];
  return {
    words: words.length,
    visible: words[0].checkVisibility({ visibilityProperty: true }),
    shown: words[0].innerText,
    text: words[0].textContent,
    box: edges(entry.getBoundingClientRect()),
    word: edges(words[0].getBoundingClientRect()),
  };
})
