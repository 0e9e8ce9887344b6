// Runs the scenarios of OpenUI5's models in a browser and prints one JSON line for each: {"name", "error"}.
//
//   node ui5.mjs BASE-URL [MODULE…]
//
// BASE-URL serves the page at /clients/ui5.html, OpenUI5 at /resources/ and the services, all on one origin; nothing else is reached.
// Without modules all are run.
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { load, user } from './scenarios.mjs'

const { chromium } = load('playwright-core')

// The modules and the queries of the pages that they run on.
const pages = { ui5v2: '', ui5v4: '', ui5statistics: '?sap-statistics=true' }
const [base, ...modules] = process.argv.slice(2)

const profile = mkdtempSync(join(tmpdir(), 'weir-chromium-'))
const context = await chromium.launchPersistentContext(profile, {
  executablePath: process.env.WEIR_TEST_CHROMIUM,
  headless: true,
  args: [
    '--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking', '--disable-component-update', '--disable-sync',
    '--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1',
  ],
  httpCredentials: { ...user, send: 'always' },
})
let failed = false
const tell = (name, error) => {
  failed ||= error !== ''
  console.log(JSON.stringify({ name, error }))
}
try {
  const elsewhere = []
  context.on('request', (r) => { if (new URL(r.url()).origin !== base && !r.url().startsWith('data:')) elsewhere.push(r.url()) })
  for (const module of modules.length ? modules : Object.keys(pages)) {
    const page = await context.newPage()
    const said = []
    page.on('console', (m) => { if (m.type() === 'error') said.push(m.text()) })
    page.on('pageerror', (e) => said.push(String(e)))
    await page.exposeFunction('forgetCookies', () => context.clearCookies())
    await page.goto(base + '/clients/ui5.html' + pages[module])
    const names = await page.evaluate((module) => new Promise((resolve, reject) => {
      sap.ui.require(['weir/' + module], (m) => { window.scenarios = m; resolve(Object.keys(m)) }, reject)
    }), module)
    for (const name of names) {
      said.length = 0
      const error = await page.evaluate(async (name) => {
        try {
          await Promise.race([window.scenarios[name](), new Promise((_, no) => setTimeout(() => no(new Error('no end within 30 s')), 30000))])
          return ''
        } catch (e) {
          return String(e && e.message || e) + '\n' + (e && e.stack || '')
        }
      }, name)
      tell(`${module}: ${name}`, error && error + '\n' + said.join('\n'))
    }
    await page.close()
  }
  tell('no request leaves the origin', elsewhere.join('\n'))
} finally {
  await context.close()
  rmSync(profile, { recursive: true, force: true })
}
process.exit(failed ? 1 : 0)
