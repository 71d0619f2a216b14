// Run by `sse_suite` with NODE_PATH and a URL: prints the events that `eventsource` (npm) reads, as JSON.
const { EventSource } = require('eventsource')

const url = process.argv[2]

// The first `most` events of a stream, of every type; EventSource reconnects when the stream ends.
function read(path, most) {
  return new Promise((resolve, reject) => {
    const found = []
    const source = new EventSource(url + path)
    const note = (event) => {
      found.push({ type: event.type, data: event.data, id: event.lastEventId })
      if (found.length === most) {
        source.close()
        resolve(found)
      }
    }
    for (const type of ['message', 'greet', 'tick', 'resumed']) source.addEventListener(type, note)
    source.addEventListener('error', (event) => {
      if (event.code !== undefined && event.code !== 200) reject(new Error(`${path}: ${event.code} ${event.message}`))
    })
  })
}

async function main() {
  const told = { plain: await read('/sse', 6), slow: await read('/sse?slow', 5), endless: await read('/sse?endless', 3) }
  process.stdout.write(JSON.stringify(told))
}

main().catch((error) => {
  console.error(error)
  process.exit(1)
})
