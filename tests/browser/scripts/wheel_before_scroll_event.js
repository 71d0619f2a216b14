// The text grows, the page scrolls to its end, the reader's wheel turns, and only then the event of that scroll comes.
() => new Promise((done) => {
  const [log, prose] = [document.querySelector(".log"), document.querySelector(".prose")];
  const frames = (count, next) => (count ? requestAnimationFrame(() => frames(count - 1, next)) : next());
  const grow = () => {
    const space = document.createElement("div");
    space.style.height = "200px";
    prose.append(space);
  };
  let calls = 0;
  new ResizeObserver((_, observer) => {
    calls += 1;
    if (calls === 1) return grow();
    observer.disconnect();
    log.dispatchEvent(new WheelEvent("wheel", { deltaY: -300 }));
    frames(2, () => {
      grow();
      frames(2, () => done(log.scrollHeight - log.scrollTop - log.clientHeight));
    });
  }).observe(prose);
})
