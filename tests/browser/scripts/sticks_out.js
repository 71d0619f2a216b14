(room) => [...room.querySelectorAll("*")]
  .filter((each) => each.checkVisibility() && !each.closest(".scroller, .aside, .log:not(:has(.empty))"))
  .map((each) => ({ each, box: each.getBoundingClientRect(), within: each.closest(".log, .talking") ?? room }))
  .map((each) => ({ ...each, within: each.within.getBoundingClientRect() }))
  .filter(({ box, within }) => box.width && (box.left < within.left - 1 || box.right > within.right + 1))
  .map(({ each }) => each.outerHTML.slice(0, 80))
