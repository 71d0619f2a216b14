// Run by `chromium_suite` with NODE_PATH, Chromium, a folder for its profile, the pin of our key (or '') and a URL:
// prints the observations of a page of that origin, as JSON.
const { chromium } = require('playwright-core')

const [program, profile, pin, url] = process.argv.slice(2)
const flags = [
  '--headless', '--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking',
  '--disable-component-update', '--disable-sync',
]
if (pin) flags.push(`--ignore-certificate-errors-spki-list=${pin}`)

// Functions that run in the page. They share no variables: only their texts are sent there.

async function fetching() {
  const big = await (await fetch('/big?n=1000000')).text()
  const lines = await (await fetch('/echo', { headers: { 'x-test': 'a, b' } })).text()
  const head = await fetch('/', { method: 'HEAD' })
  const lost = await fetch('/big?n=x')
  document.cookie = 'one=1'
  document.cookie = 'two=2'
  const many = await Promise.all([...Array(60).keys()].map(async (n) => (await (await fetch(`/big?n=${n}`)).text()).length))
  return {
    big: [big.length, big.replaceAll('x', '')],
    field: lines.includes('x-test: a, b\n'),
    head: [head.status, head.headers.get('content-length'), await head.text()],
    lost: lost.status,
    cookies: await (await fetch('/cookie')).text(),
    many: many.every((length, n) => length === n),
    protocols: [...new Set(performance.getEntriesByType('resource').map((entry) => entry.nextHopProtocol))],
  }
}

async function uploading() {
  const sent = new Uint8Array(5_000_000)
  for (let at = 0; at < sent.length; at += 65_536) crypto.getRandomValues(sent.subarray(at, at + 65_536))
  const came = new Uint8Array(await (await fetch('/up', { method: 'POST', body: sent })).arrayBuffer())
  const form = new FormData()
  form.append('file', new Blob([sent.subarray(0, 300_000)]), 'a.bin')
  const echoed = await fetch('/up', { method: 'PUT', body: form })
  const file = (await echoed.formData()).get('file')
  return {
    whole: came.length === sent.length && came.every((byte, at) => byte === sent[at]),
    form: [file.name, file.size],
  }
}

// A body of unknown length. Chromium sends one over HTTP/2 only.
async function streaming() {
  const pieces = ['one ', 'two ', 'three']
  const body = new ReadableStream({
    async pull(controller) {
      await new Promise((done) => setTimeout(done, 50))
      if (pieces.length) controller.enqueue(new TextEncoder().encode(pieces.shift()))
      else controller.close()
    },
  })
  return (await fetch('/up', { method: 'POST', body, duplex: 'half' })).text()
}

async function aborting() {
  const open = async (wanted) => {
    for (let tries = 0; tries < 100; tries++) {
      const count = Number(await (await fetch('/sse-open')).text())
      if (count === wanted) return count
      await new Promise((done) => setTimeout(done, 50))
    }
    return -1
  }
  const controller = new AbortController()
  const reader = (await fetch('/sse?endless', { signal: controller.signal })).body.getReader()
  const first = new TextDecoder().decode((await reader.read()).value)
  const before = await open(1)
  controller.abort()
  const error = await reader.read().then(() => '', (problem) => problem.name)
  const early = new AbortController()
  const never = fetch('/sse?endless', { signal: early.signal }).then(() => '', (problem) => problem.name)
  early.abort()
  return { first, before, error, early: await never, after: await open(0), fine: (await fetch('/')).status }
}

// Every event until one of type `last`; EventSource reconnects when a stream ends.
function listening([path, last]) {
  return new Promise((resolve) => {
    const found = []
    const source = new EventSource(path)
    const note = (event) => {
      found.push([event.type, event.data, event.lastEventId])
      if (event.type !== last) return
      source.close()
      resolve(found)
    }
    for (const type of ['message', 'greet', 'tick', 'resumed']) source.addEventListener(type, note)
  })
}

function talking() {
  return new Promise((resolve) => {
    const socket = new WebSocket(`${location.origin.replace('http', 'ws')}/version`)
    const binary = new Uint8Array(1_000_000).map((_, at) => (at * at) % 251)
    const text = 'é€😀 '.repeat(100_000)
    const heard = []
    socket.binaryType = 'arraybuffer'
    socket.onmessage = ({ data }) => {
      if (!heard.length) for (const message of ['é', text, binary]) socket.send(message)
      // Alone: right after a large message Chromium 156 may drop an empty one (its net log shows no frame).
      if (heard.length === 3) socket.send('')
      const same = typeof data === 'string' ? data === text : new Uint8Array(data).every((byte, at) => byte === binary[at])
      heard.push(data.length < 10 ? data : [data.length ?? data.byteLength, same])
      if (heard.length === 5) socket.close(3001, 'enough')
    }
    socket.onclose = ({ code, reason, wasClean }) =>
      resolve({ heard, extensions: socket.extensions, closed: [code, reason, wasClean] })
  })
}

const steps = {
  fetch: [fetching],
  upload: [uploading],
  streamed: [streaming],
  abort: [aborting],
  events: [listening, ['/sse', 'resumed']],
  slow: [listening, ['/sse?slow', 'resumed']],
  endless: [listening, ['/sse?endless', 'tick']],
  socket: [talking],
  again: [talking],
}

async function main() {
  const browser = await chromium.launchPersistentContext(profile, { executablePath: program, args: flags, headless: true })
  try {
    const page = await browser.newPage()
    const answer = await page.goto(`${url}/`)
    const told = { version: browser.browser()?.version(), page: [answer.status(), await answer.text()] }
    for (const [name, step] of Object.entries(steps)) {
      console.error(name) // shows the progress of a slow run
      if (name !== 'streamed' || pin) told[name] = await page.evaluate(...step)
    }
    process.stdout.write(JSON.stringify(told))
  } finally {
    await browser.close()
  }
}

main().catch((error) => {
  console.error(error)
  process.exit(1)
})
