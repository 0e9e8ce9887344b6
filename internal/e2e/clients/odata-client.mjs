// Runs the scenarios of @odata/client.
//
//   node odata-client.mjs BASE-URL v2|v4
import { load, name, product, root2, root4, run, same, user } from './scenarios.mjs'

// The package's own way to keep cookies does not load with the fetch-cookie that it depends on; this is what it means to do.
globalThis.fetch = load('fetch-cookie').default(fetch)
const { EdmV4, OData, ODataDateTime, ODataFilter, param } = load('@odata/client')

const [base, version] = process.argv.slice(2)
const v4 = version === 'v4'
const open = (headers) => OData.New({
  serviceEndpoint: base + (v4 ? root4 : root2) + '/', version, credential: user, processCsrfToken: true, commonHeaders: { ...headers },
})
const client = open()
const anyVersion = open({ 'If-Match': '*' })
const products = client.getEntitySet('ProductSet')
const price = v4 ? 9.5 : '9.500' // V4 reads it without IEEE754Compatible
const fresh = (more) => product({ Price: price, ...more })
const entity = async (part) => { const b = await part.json(); return v4 ? b : b.d }
const message = (b) => v4 ? b.error.message : b.error.message.value
const date = v4 ? '2027-01-31T00:00:00Z' : '/Date(1801353600000)/'
const order = (more) => ({ CustomerID: '0100000000', CurrencyCode: 'EUR', ...more })
const item = (more) => ({ ProductID: 'HT-1000', Quantity: v4 ? 2 : '2.000', DeliveryDate: date, ...more })

await run({
  async 'query' () {
    const rows = await products.query(param().select(['ProductID', 'Price']).orderby('ProductID', 'asc').top(3).skip(1).filter(ODataFilter.newFilter().field('Category').eq('Notebooks').field('Price').between(1, 100000)))
    same(rows.length, 3, 'rows')
    same(rows.map((p) => p.ProductID).join(), rows.map((p) => p.ProductID).sort().join(), 'order')
    same('Name' in rows[0], false, 'what is not selected')
  },
  async 'filters' () {
    const found = await products.find({ Category: 'Notebooks', CurrencyCode: 'EUR' })
    if (!found.length) throw new Error('nothing found')
    const since = v4 ? EdmV4.DateTimeOffset.from(new Date(0)) : ODataDateTime.from(new Date(0))
    const some = await products.query(ODataFilter.newFilter().field('ProductID').in(['HT-1000', 'HT-1001']).field('CreatedAt').gt(since))
    same(some.map((p) => p.ProductID).sort(), ['HT-1000', 'HT-1001'], 'products')
  },
  async 'count' () {
    const all = await products.count()
    const some = await products.count({ Category: 'Notebooks' })
    if (!(all > some && some > 0)) throw new Error(`${some} of ${all}`)
  },
  async 'expand' () {
    const [first] = await client.getEntitySet('SalesOrderSet').query(param().expand(['ToBusinessPartner', 'ToLineItems']).top(1))
    same(first.ToBusinessPartner.BusinessPartnerID, first.CustomerID, 'customer')
    if (!(v4 ? first.ToLineItems : first.ToLineItems.results).length) throw new Error('no items')
  },
  async 'create and retrieve' () {
    const made = await products.create(fresh({ Name: name }))
    same(made.Name, name, 'created')
    same((await products.retrieve(made.ProductID)).Name, name, 'read')
  },
  async 'update and delete' () {
    const made = await products.create(fresh())
    await anyVersion.getEntitySet('ProductSet').update(made.ProductID, { Name: 'Changed' })
    same((await products.retrieve(made.ProductID)).Name, 'Changed', 'name')
    await anyVersion.getEntitySet('ProductSet').delete(made.ProductID)
    let told
    await products.retrieve(made.ProductID).catch((e) => { told = e.message })
    if (!told) throw new Error('it is still there')
  },
  async 'a key of two parts' () {
    const made = await client.getEntitySet('SalesOrderSet').create(order({ ToLineItems: [item(), item()] }))
    const items = client.getEntitySet('SalesOrderLineItemSet')
    const [first, second] = v4 ? made.ToLineItems : made.ToLineItems.results
    const key = ({ SalesOrderID, ItemPosition }) => ({ SalesOrderID, ItemPosition })
    await items.update(key(first), { Note: 'Changed' })
    same((await items.retrieve(key(first))).Note, 'Changed', 'note')
    await items.delete(key(second))
    same(await items.count({ SalesOrderID: made.SalesOrderID }), 1, 'items')
  },
  async 'a change without its ETag is refused' () {
    const made = await products.create(fresh())
    let told
    await products.update(made.ProductID, { Name: 'Changed' }).catch((e) => { told = e.message })
    if (!told) throw new Error('it is changed')
  },
  async 'action import' () {
    const made = await client.getEntitySet('SalesOrderSet').create(order())
    if (v4) {
      const done = await client.actionImport('SalesOrder_Confirm', { SalesOrderID: made.SalesOrderID })
      same(done.LifecycleStatus, 'P', 'status')
    } else {
      // In V2 the parameters stand in the URL.
      const done = await client.actionImport('SalesOrder_Confirm', undefined, param().custom('SalesOrderID', `'${made.SalesOrderID}'`))
      same(done.d.LifecycleStatus ?? done.d.SalesOrder_Confirm?.LifecycleStatus, 'P', 'status')
    }
  },
  async 'batch' () {
    const one = fresh()
    const old = await products.create(fresh())
    const parts = await client.execBatchRequests([
      client.newBatchRequest({ collection: 'ProductSet', params: param().filter(ODataFilter.newFilter().field('ProductID').eq('HT-1000')).top(1) }),
      client.newBatchRequest({ collection: 'ProductSet', method: 'POST', entity: { ...one, Name: name } }),
      client.newBatchRequest({ collection: 'ProductSet', id: one.ProductID }),
      anyVersion.newBatchRequest({ collection: 'ProductSet', id: one.ProductID, method: 'PATCH', entity: { Name: 'Changed' } }),
      client.newBatchRequest({ collection: 'ProductSet', id: one.ProductID }),
      anyVersion.newBatchRequest({ collection: 'ProductSet', id: old.ProductID, method: 'DELETE' }),
      client.newBatchRequest({ collection: 'ProductSet', method: 'POST', entity: one }),
    ])
    same(parts.map((p) => Math.floor(p.status / 100)), [2, 2, 2, 2, 2, 2, 4], 'status codes')
    const rows = await entity(parts[0])
    same((v4 ? rows.value : rows.results).map((p) => p.ProductID), ['HT-1000'], 'found')
    same([(await entity(parts[1])).Name, (await entity(parts[2])).Name, (await entity(parts[4])).Name], [name, name, 'Changed'], 'names')
    if (!message(await parts[6].json())) throw new Error('no message')
  },
  ...(v4 && {
    async 'batch in JSON' () {
      const one = fresh()
      const parts = await client.execBatchRequestsJson([
        client.newBatchRequest({ collection: 'ProductSet', method: 'POST', entity: one, requestId: 'a', atomicityGroup: 'g' }),
        client.newBatchRequest({ collection: 'ProductSet', method: 'POST', entity: fresh(), requestId: 'b', atomicityGroup: 'g' }),
        client.newBatchRequest({ collection: 'ProductSet', id: one.ProductID, requestId: 'c', dependsOn: ['g'] }),
      ])
      const status = Object.fromEntries(parts.map((p) => [p.raw.id, p.status]))
      same([status.a, status.b, status.c], [201, 201, 200], 'status codes')
    },
    async 'aggregation' () {
      const rows = await products.query(param().apply('groupby((Category),aggregate($count as Products))'))
      if (rows.length < 2 || !rows.every((r) => r.Category && r.Products > 0)) throw new Error(JSON.stringify(rows))
    },
  }),
})
