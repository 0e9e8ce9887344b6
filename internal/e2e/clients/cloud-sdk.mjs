// Runs the scenarios of a client that SAP Cloud SDK has generated from our $metadata.
//
//   node cloud-sdk.mjs BASE-URL FOLDER v2|v4
//
// FOLDER holds the generated clients gwsample-v2 and gwsample-v4.
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { id, load, name, refusal, run, same, user } from './scenarios.mjs'

const [base, folder, version] = process.argv.slice(2)
const { muteLoggers } = load('@sap-cloud-sdk/util')
const { asc, desc, and, or, not, filterFunctions } = load('@sap-cloud-sdk/odata-' + version)
const BigNumber = load('bignumber.js')
const moment = load('moment')
const generated = createRequire(join(folder, 'client.js'))('./gwsample-' + version)
muteLoggers()

const v4 = version === 'v4'
const service = v4 ? generated.gwsampleV4() : generated.gwsampleV2()
const { productSetApi: products, salesOrderSetApi: orders, salesOrderLineItemSetApi: items, businessPartnerSetApi: partners, contactSetApi: contacts } = service
const P = products.schema
const to = { url: base, ...user }

const product = (productId = id()) => products.entityBuilder().productId(productId).typeCode('PR').category('Notebooks').name('Notebook').supplierId('0100000000')
  .taxTarifCode(1).measureUnit('EA').currencyCode('EUR').price(new BigNumber('9.5'))
const item = (note) => items.entityBuilder().productId('HT-1000').note(note).quantity(new BigNumber(2)).deliveryDate(moment.utc('2027-01-31T00:00:00Z'))
const order = () => orders.entityBuilder().customerId('0100000000').currencyCode('EUR')
const create = (entity, api = products) => api.requestBuilder().create(entity)
const read = (productId) => products.requestBuilder().getByKey(productId).execute(to)
const count = () => products.requestBuilder().getAll().count().execute(to)
// Navigation is selected in V2 and expanded in V4.
const expand = (builder, ...navigation) => v4 ? builder.expand(...navigation) : builder.select(orders.schema.ALL_FIELDS, ...navigation)

await run({
  async 'filter, select, orderby, top and skip' () {
    const page = (skip) => products.requestBuilder().getAll()
      .filter(and(P.PRODUCT_ID.notEquals("O'Neil"), or(P.PRICE.greaterThan(new BigNumber('1.5')), P.CATEGORY.equals('Notebooks')), not(P.CATEGORY.equals('None'))))
      .select(P.PRODUCT_ID, P.PRICE).orderBy(desc(P.PRICE), asc(P.PRODUCT_ID)).top(3).skip(skip).execute(to)
    const rows = [...await page(0), ...await page(3)]
    same(rows.length, 6, 'rows')
    for (let i = 1; i < rows.length; i++) if (rows[i].price.gt(rows[i - 1].price)) throw new Error('order: ' + rows.map((p) => p.price))
    same(rows[0].category, undefined, 'what is not selected')
  },
  async 'functions in filters' () {
    const { startsWith, contains, substringOf, toLower, round } = filterFunctions()
    const holds = v4 ? contains(toLower(P.CATEGORY), 'note') : substringOf('note', toLower(P.CATEGORY)).equals(true)
    const rows = await products.requestBuilder().getAll().filter(and(v4 ? startsWith(P.PRODUCT_ID, 'HT-') : startsWith(P.PRODUCT_ID, 'HT-').equals(true), holds, round(P.PRICE).greaterThan(0))).execute(to)
    if (!rows.length) throw new Error('nothing found')
    for (const p of rows) same(p.category, 'Notebooks', 'category')
  },
  async 'count' () {
    const all = await count()
    if (!(all > 5)) throw new Error('count ' + all)
    same((await products.requestBuilder().getAll().execute(to)).length, all, 'rows')
  },
  async 'expand' () {
    const O = orders.schema
    const found = await expand(orders.requestBuilder().getAll(), O.TO_BUSINESS_PARTNER, O.TO_LINE_ITEMS).orderBy(asc(O.SALES_ORDER_ID)).top(3).execute(to)
    same(found.length, 3, 'orders')
    for (const o of found) {
      same(o.toBusinessPartner.businessPartnerId, o.customerId, 'customer')
      if (!o.toLineItems.length) throw new Error('no items in ' + o.salesOrderId)
      for (const i of o.toLineItems) same(i.salesOrderId, o.salesOrderId, 'order of an item')
    }
  },
  async 'a complex property and a GUID' () {
    const [first] = await contacts.requestBuilder().getAll().top(1).execute(to)
    const again = await contacts.requestBuilder().getByKey(first.contactGuid).execute(to)
    same(again.address.city, first.address.city, 'city')
    const there = await partners.requestBuilder().getAll().filter(partners.schema.ADDRESS.city.equals(again.address.city)).top(1).execute(to)
    same(there.every((p) => p.address.city === again.address.city), true, 'partners of that city')
  },
  async 'create and read by key' () {
    const made = await create(product().name(name).build()).execute(to)
    same(made.name, name, 'created')
    const again = await read(made.productId)
    same(again.name, name, 'read')
    same(again.price.toNumber(), 9.5, 'price')
    same(again.versionIdentifier, made.versionIdentifier, 'ETag')
    same(await refusal(read('NONE')), 404, 'status of what is not there')
  },
  async 'a change without a token is refused' () {
    same(await refusal(create(product().build()).skipCsrfTokenFetching().execute(to)), 403, 'status')
  },
  async 'update by PATCH with its ETag' () {
    const made = await create(product().build()).execute(to)
    made.price = new BigNumber('77')
    const updated = await products.requestBuilder().update(made).execute(to)
    const again = await read(made.productId)
    same([again.price.toNumber(), again.name], [77, 'Notebook'], 'read')
    same(updated.versionIdentifier, again.versionIdentifier, 'ETag')
  },
  async 'update by PUT' () {
    const made = await create(product().description('before').build()).execute(to)
    made.name = 'Replaced'
    made.description = null
    await products.requestBuilder().update(made).replaceWholeEntityWithPut().execute(to)
    const again = await read(made.productId)
    same([again.name, again.description], ['Replaced', null], 'read')
  },
  async 'a stale ETag is refused' () {
    const made = await create(product().build()).execute(to)
    const theirs = await read(made.productId)
    theirs.name = 'theirs'
    await products.requestBuilder().update(theirs).execute(to)
    made.name = 'ours'
    same(await refusal(products.requestBuilder().update(made).execute(to)), 412, 'status')
    await products.requestBuilder().update(made).ignoreVersionIdentifier().execute(to)
    same((await read(made.productId)).name, 'ours', 'name')
  },
  async 'delete' () {
    const made = await create(product().build()).execute(to)
    same(await refusal(products.requestBuilder().delete(made).setVersionIdentifier('W/"stale"').execute(to)), 412, 'status with a stale ETag')
    await products.requestBuilder().delete(made).execute(to)
    same(await refusal(read(made.productId)), 404, 'status afterwards')
  },
  async 'deep create' () {
    const made = await create(order().toLineItems([1, 2, 3].map((n) => item('item ' + n).build())).build(), orders).execute(to)
    same(made.toLineItems.map((i) => i.note), ['item 1', 'item 2', 'item 3'], 'items')
    same(made.toLineItems.every((i) => i.salesOrderId === made.salesOrderId), true, 'keys of the parent')
    const again = await expand(orders.requestBuilder().getByKey(made.salesOrderId), orders.schema.TO_LINE_ITEMS).execute(to)
    same(again.toLineItems.length, 3, 'items read')
    same(made.grossAmount.toString(), again.grossAmount.toString(), 'amount')
  },
  async 'create below a parent' () {
    const made = await create(order().build(), orders).execute(to)
    const child = await create(item('child').build(), items).asChildOf(made, orders.schema.TO_LINE_ITEMS).execute(to)
    same(child.salesOrderId, made.salesOrderId, 'order')
  },
  async [v4 ? 'action import' : 'function import'] () {
    const made = await create(order().build(), orders).execute(to)
    const done = await service.operations.salesOrderConfirm({ salesOrderId: made.salesOrderId }).execute(to)
    same([done.salesOrderId, done.lifecycleStatus], [made.salesOrderId, 'P'], 'order')
  },
  async 'batch of reads' () {
    const [list, one, none] = await service.batch(products.requestBuilder().getAll().top(2), products.requestBuilder().getByKey('HT-1000'), products.requestBuilder().getByKey('NONE')).execute(to)
    same(list.as(products).length, 2, 'rows')
    same(one.as(products)[0].productId, 'HT-1000', 'product')
    // A V4 batch may stop at its first error, and this one is the last.
    same([none.isError(), none.httpCode], [true, 404], 'what is not there')
  },
  async 'batch with changesets' () {
    const old = [await create(product().build()).execute(to), await create(product().build()).execute(to)]
    const fresh = product().name(name).build()
    old[0].name = 'Changed'
    for (const paths of ['absolute', 'relativeToService', 'relativeToEntity']) {
      if (paths !== 'absolute') fresh.productId = id()
      const answer = await service.batch(
        service.changeset(create(fresh), products.requestBuilder().update(old[0]).ignoreVersionIdentifier(), ...(paths === 'relativeToEntity' ? [products.requestBuilder().delete(old[1])] : [])),
        products.requestBuilder().getByKey(fresh.productId),
        service.changeset(create(order().toLineItems([item('deep').build()]).build(), orders)),
      ).withSubRequestPathType(paths).execute(to)
      same(answer.map((r) => r.isSuccess()), [true, true, true], 'parts with paths ' + paths)
      const [made, changed] = answer[0].responses
      same([made.httpCode, changed.httpCode < 300], [201, true], 'status codes')
      same(made.as(products).name, name, 'created')
      same(answer[1].as(products)[0].name, name, 'read')
      same(answer[2].responses[0].as(orders).toLineItems.length, 1, 'items')
    }
    same((await read(old[0].productId)).name, 'Changed', 'changed')
    same(await refusal(read(old[1].productId)), 404, 'status of what is deleted')
  },
  async 'create 1,000 in one changeset' () {
    const before = await count()
    const [answer] = await service.batch(service.changeset(...Array.from({ length: 1000 }, () => create(product().build())))).execute(to)
    same(answer.isSuccess(), true, 'success')
    same(answer.responses.filter((r) => r.httpCode === 201).length, 1000, 'created')
    same(await count() - before, 1000, 'growth')
  },
  async 'a failing changeset is told as one and leaves nothing' () {
    const [one, twice] = [product().build(), product().build()]
    const answer = await service.batch(service.changeset(create(one), create(twice), create(twice))).execute(to)
    same(answer.length, 1, 'parts')
    same([answer[0].isSuccess(), answer[0].isError(), Math.floor(answer[0].httpCode / 100)], [false, true, 4], 'answer')
    const message = v4 ? answer[0].body.error.message : answer[0].body.error.message.value
    if (!message) throw new Error('no message: ' + JSON.stringify(answer[0].body))
    same(await refusal(read(one.productId)), 404, 'status of the first one')
  },
})
