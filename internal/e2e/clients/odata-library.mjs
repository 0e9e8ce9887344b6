// Runs the scenarios of @sap_oss/odata-library, whose batches have lines that end in LF alone.
//
//   node odata-library.mjs BASE-URL v2|v4
import { load, name, product, refusal, root2, root4, run, same, user } from './scenarios.mjs'

const { Service } = load('@sap_oss/odata-library')

const [base, version] = process.argv.slice(2)
const v4 = version === 'v4'
const logger = Object.fromEntries(['debug', 'info', 'warn', 'error', 'trace', 'log'].map((level) => [level, () => {}]))
const service = new Service({ url: base + (v4 ? root4 : root2) + '/', auth: { type: 'basic', ...user }, logger, strict: true })
await service.init

const fresh = (more) => product({ Price: '9.5', ...more })
const date = v4 ? '2027-01-31T00:00:00Z' : new Date('2027-01-31T00:00:00Z')
const item = (note) => ({ ProductID: 'HT-1000', Note: note, Quantity: '2', DeliveryDate: date })
const read = (ProductID) => service.ProductSet.get({ ProductID })
const list = (many) => v4 ? many : many.results ?? many

await run({
  async 'query' () {
    const rows = await service.ProductSet.select('ProductID', 'Price').filter("Category eq 'Notebooks' and Price gt 1").orderby('ProductID').top(3).skip(1).get()
    same(rows.length, 3, 'rows')
    same('Name' in rows[0], false, 'what is not selected')
    if (!((await service.ProductSet.count()) > 5)) throw new Error('count')
  },
  async 'expand and navigation' () {
    const [order] = await service.SalesOrderSet.expand('ToLineItems', 'ToBusinessPartner').top(1).get()
    same(order.ToBusinessPartner.BusinessPartnerID, order.CustomerID, 'customer')
    const items = await service.SalesOrderSet.key({ SalesOrderID: order.SalesOrderID }).ToLineItems.get()
    same(items.length, list(order.ToLineItems).length, 'items')
  },
  async 'create, update and delete' () {
    const made = await service.ProductSet.post(fresh({ Name: name }))
    same(made.Name, name, 'created')
    await service.ProductSet[v4 ? 'patch' : 'merge']({ ProductID: made.ProductID, Price: '77' })
    same(Number((await read(made.ProductID)).Price), 77, 'price')
    await service.ProductSet.delete({ ProductID: made.ProductID })
    same(await refusal(read(made.ProductID)), 404, 'status afterwards')
  },
  async 'deep create and an action' () {
    const made = await service.SalesOrderSet.post({ CustomerID: '0100000000', CurrencyCode: 'EUR', ToLineItems: [item('one'), item('two')] })
    same(list(made.ToLineItems).map((i) => i.Note), ['one', 'two'], 'items')
    const done = await service.SalesOrder_Confirm({ SalesOrderID: made.SalesOrderID })
    same(done.LifecycleStatus, 'P', 'status')
  },
  async 'batch with a changeset' () {
    const [one, two] = [fresh(), fresh()] // it reads the answers of a batch as Latin-1
    const batch = service.createBatch()
    service.ProductSet.get({ ProductID: 'HT-1000' })
    const changes = service.createChangeSet(batch)
    service.ProductSet.post(one)
    service.ProductSet.post(two)
    service.commitChangeSet(changes)
    service.ProductSet.get({ ProductID: one.ProductID })
    const answers = (await service.sendBatch(batch)).map((a) => a.body ?? a) // in V4 they stay whole
    same(answers.map((a) => a.ProductID), ['HT-1000', one.ProductID, two.ProductID, one.ProductID], 'products')
  },
  async 'a failing changeset is one error and leaves nothing' () {
    const [one, twice] = [fresh(), fresh()]
    const batch = service.createBatch()
    const changes = service.createChangeSet(batch)
    for (const p of [one, twice, twice]) service.ProductSet.post(p).catch(() => {})
    service.commitChangeSet(changes)
    const answers = await service.sendBatch(batch)
    same(answers.map((a) => a instanceof Error && Math.floor(a.response.statusCode / 100)), [4], 'answers')
    same(await refusal(read(one.ProductID)), 404, 'status of the first one')
  },
})
