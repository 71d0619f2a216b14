async (relay) => {
    const options = {method: "POST", mode: "no-cors", body: '{"code": "EVIL66"}'};
    const sent = await fetch(`http://${relay}/pairing/register`, options).then(() => "sent", () => "not sent");
    const opened = [];
    for (let n = 0; n < 6; n++) {
        opened.push(await new Promise((tell) => {
            const socket = new WebSocket(`ws://${relay}/ws`);
            socket.onopen = () => tell("open");
            socket.onerror = () => tell("refused");
        }));
    }
    return [sent, ...opened];
}
