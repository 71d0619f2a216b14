// Run by `mcp_phone_suite` with NODE_PATH and instructions: the official TypeScript SDK uses a phone; prints JSON.
const { Client } = require('@modelcontextprotocol/sdk/client/index.js')
const { StreamableHTTPClientTransport } = require('@modelcontextprotocol/sdk/client/streamableHttp.js')
const { ElicitRequestSchema, ResourceUpdatedNotificationSchema } = require('@modelcontextprotocol/sdk/types.js')

const errand = JSON.parse(process.argv[2])
const control = (what) => fetch(errand.control + what)

async function connected(token) {
  const client = new Client({ name: 'conformance', version: '1' }, { capabilities: { elicitation: {} } })
  const headers = token ? { Authorization: `Bearer ${token}` } : {}
  await client.connect(new StreamableHTTPClientTransport(new URL(errand.url), { requestInit: { headers } }))
  return client
}

// The status of a refused connection; 0 if it is accepted.
async function refused(token) {
  try {
    await (await connected(token)).close()
    return 0
  } catch (error) {
    return error.code
  }
}

async function main() {
  const seen = { 'without a token': await refused(''), 'without a grant': await refused(errand.ungranted) }
  const phone = await connected(errand.token)
  let answer = 'accept'
  let noteAsked
  const asked = new Promise((resolve) => (noteAsked = resolve))
  phone.setRequestHandler(ElicitRequestSchema, async () => {
    if (answer === 'cut') {
      await control('/cut')
      // The answer is sent once, so it must not use a cut connection that still counts as open.
      await Promise.allSettled(Array.from({ length: 8 }, () => fetch(errand.url).then((found) => found.text())))
    }
    if (answer === 'never') {
      noteAsked()
      await new Promise(() => {})
    }
    return { action: 'accept', content: {} }
  })
  const call = (name, options) => phone.callTool({ name, arguments: errand.calls[name] ?? {} }, undefined, options)

  seen.tools = (await phone.listTools()).tools.map((tool) => tool.name)
  seen.failed = {}
  for (const name of seen.tools) {
    const result = await call(name)
    if (result.isError) seen.failed[name] = result.content
    if (name === 'phone_screenshot') seen.picture = result.content[0].mimeType
  }
  await call('phone_open_app')
  seen.structured = (await call('phone_current_app')).structuredContent

  answer = 'never'
  const stop = new AbortController()
  const cancelled = call('phone_broadcast', { signal: stop.signal }).then(() => false, () => true)
  await asked
  stop.abort('enough')
  seen.cancelled = await cancelled

  answer = 'cut'
  seen.resumed = (await call('phone_broadcast')).isError

  const updated = new Promise((resolve) =>
    phone.setNotificationHandler(ResourceUpdatedNotificationSchema, (note) => resolve(note.params.uri)),
  )
  await phone.subscribeResource({ uri: 'phone://notifications' })
  await control('/notify')
  seen.updated = await updated
  await phone.close()
  await control('/revoke')
  seen.revoked = await refused(errand.token)
  process.stdout.write(JSON.stringify(seen))
}

main().then(
  () => process.exit(0),
  (error) => {
    console.error(error)
    process.exit(1)
  },
)
