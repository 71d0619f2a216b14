(log) => new Promise((done) => {
  const look = () => {
    const left = log.scrollHeight - log.scrollTop - log.clientHeight;
    log.scrollTop > 0 && left < 40 ? done() : requestAnimationFrame(look);
  };
  look();
})
