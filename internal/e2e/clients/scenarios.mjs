// What the scenarios of all clients for Node.js share.
import { createRequire } from 'node:module'
import { join } from 'node:path'

// load requires a package of the folder that scripts/with-clients has filled.
export const load = createRequire(join(process.env.WEIR_TEST_CLIENTS, 'package.json'))

export const user = { username: 'admin', password: 'admin' }
export const root2 = '/sap/opu/odata/IWBEP/GWSAMPLE_BASIC'
export const root4 = '/sap/opu/odata4/iwbep/gwsample/default/iwbep/GWSAMPLE_BASIC/0001'

// Takes every trap of encodings: outside the basic plane, combining, quotes of both kinds, a backslash.
export const name = 'Note 😀 ä é ß 漢字 𝒳 "quoted" \\ \'single\''

export function same(got, want, what) {
  if (JSON.stringify(got) !== JSON.stringify(want)) throw new Error(`${what}: ${JSON.stringify(got)}, want ${JSON.stringify(want)}`)
}

let serial = 0
const stamp = Date.now().toString(36).toUpperCase().slice(-5)

// id is a new product's, ten characters long.
export const id = () => stamp + String(++serial).padStart(5, '0')

export const product = (more) => ({
  ProductID: id(), TypeCode: 'PR', Category: 'Notebooks', Name: 'Notebook', SupplierID: '0100000000', TaxTarifCode: 1, MeasureUnit: 'EA', CurrencyCode: 'EUR', ...more,
})

// run runs scenarios one after another and prints one JSON line for each: {"name", "error"}.
export async function run(scenarios) {
  let failed = false
  for (const [name, scenario] of Object.entries(scenarios)) {
    let error = ''
    try {
      await Promise.race([scenario(), new Promise((_, no) => setTimeout(() => no(new Error('no end within 30 s')), 30000).unref())])
    } catch (e) {
      failed = true
      error = tell(e)
    }
    console.log(JSON.stringify({ name, error }))
  }
  process.exit(failed ? 1 : 0)
}

// tell writes an error with what caused it and what the server answered.
function tell(e) {
  const lines = [e?.stack || String(e)]
  for (let c = e; c; c = c.cause) {
    if (c !== e) lines.push('because of ' + c.message)
    if (c.response?.status) lines.push(`${c.response.status} ${JSON.stringify(c.response.data)}`)
  }
  return lines.join('\n')
}

// refusal is the status with which the server refused what promise waits for.
export async function refusal(promise) {
  try {
    await promise
  } catch (e) {
    for (let c = e; c; c = c.cause) {
      const status = c.response?.status || c.status
      if (status) return status
    }
    throw e
  }
  return 'no refusal'
}
