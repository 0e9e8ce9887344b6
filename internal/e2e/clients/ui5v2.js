sap.ui.define([
  'weir/ui5', 'sap/ui/model/odata/v2/ODataModel', 'sap/ui/model/Filter', 'sap/ui/model/Sorter',
], function (shared, ODataModel, Filter, Sorter) {
  'use strict'

  const { stamp, same, product, name } = shared
  const root = '/sap/opu/odata/IWBEP/GWSAMPLE_BASIC/'
  const open = async (settings) => {
    const model = new ODataModel(Object.assign({ serviceUrl: root, useBatch: true, defaultCountMode: 'Inline' }, settings))
    await model.metadataLoaded(true)
    return model
  }
  // call turns the callbacks of a model's method into a promise of the answer.
  const call = (model, method, path, ...rest) => new Promise((success, no) => {
    const options = Object.assign({}, rest.pop(), { success: (data, response) => success({ data, response }), error: (e) => no(new Error(`${method} ${path}: ${e.statusCode} ${e.responseText || e.message}`)) })
    model[method](path, ...rest, options)
  })
  const submit = (model, groupId) => new Promise((success, error) => model.submitChanges({ groupId, success, error }))
  const count = (model) => call(model, 'read', '/ProductSet/$count', {}).then((r) => Number(r.data))

  return {
    async 'create 1,000 in one changeset' () {
      const model = await open()
      model.setDeferredGroups(['mass'])
      const before = await count(model)
      const base = 'M' + stamp
      for (let i = 0; i < 1000; i++) {
        model.create('/ProductSet', product({ ProductID: base + String(i).padStart(3, '0') }), { groupId: 'mass', changeSetId: 'all' })
      }
      const answer = await submit(model, 'mass')
      const made = answer.__batchResponses[0].__changeResponses
      same(made.length, 1000, 'responses')
      same(made.filter((r) => r.statusCode === '201').length, 1000, 'created')
      same(made[999].data.ProductID, base + '999', 'the last one')
      same(await count(model) - before, 1000, 'growth')
    },
    async 'a failing changeset leaves nothing and blames one' () {
      const model = await open()
      model.setDeferredGroups(['bad'])
      const before = await count(model)
      const errors = []
      const told = []
      model.attachMessageChange((e) => told.push(...e.getParameter('newMessages')))
      const twice = product()
      for (const p of [product(), twice, twice, product()]) {
        model.create('/ProductSet', p, { groupId: 'bad', changeSetId: 'all', error: (e) => errors.push(e) })
      }
      const answer = await submit(model, 'bad')
      same(answer.__batchResponses.length, 1, 'parts')
      const failed = answer.__batchResponses[0]
      if (!failed.response || failed.response.statusCode[0] !== '4') throw new Error('no error: ' + JSON.stringify(failed).slice(0, 500))
      const body = JSON.parse(failed.response.body)
      if (!body.error.message.value) throw new Error('no message: ' + failed.response.body)
      same(errors.length, 4, 'errors told')
      same(await count(model), before, 'products')
      same(told.map((m) => m.message), [body.error.message.value], 'messages')
    },
    async 'deep create' () {
      const model = await open()
      const { data } = await call(model, 'create', '/SalesOrderSet', {
        CustomerID: '0100000000', CurrencyCode: 'EUR', Note: 'deep',
        ToLineItems: [10, 20, 30].map((n) => ({ ProductID: 'HT-1000', Note: 'item ' + n, Quantity: '2.000', QuantityUnit: 'EA', DeliveryDate: new Date(1700000000000) })),
      }, {})
      same(data.ToLineItems.results.map((i) => i.Note), ['item 10', 'item 20', 'item 30'], 'items')
      same(data.ToLineItems.results.every((i) => i.SalesOrderID === data.SalesOrderID), true, 'keys of the parent')
    },
    async 'deep create of entries, read again in the same batch' () {
      const model = await open()
      model.setDeferredGroups(['changes'])
      const created = new Promise((success, error) => {
        const order = model.createEntry('/SalesOrderSet', { properties: { CustomerID: '0100000000', CurrencyCode: 'EUR', Note: 'deep' }, expand: 'ToLineItems,ToBusinessPartner', success, error })
        for (const n of [1, 2]) {
          model.createEntry('ToLineItems', { context: order, properties: { ProductID: 'HT-1000', Note: 'item ' + n, Quantity: '2.000', DeliveryDate: new Date(1700000000000) } })
        }
      })
      await submit(model)
      const order = await created
      same(order.ToLineItems.results.map((i) => i.Note).sort(), ['item 1', 'item 2'], 'items')
      same(order.ToBusinessPartner.BusinessPartnerID, '0100000000', 'customer')
      if (!(order.GrossAmount > 0)) throw new Error('amount ' + order.GrossAmount)
    },
    async 'deep create of 1,000 products below a parent without a table' () {
      const model = await open({ serviceUrl: '/sap/opu/odata/sap/ZGWSAMPLE_MASSINSERT_SRV/' })
      const before = await count(model)
      const list = Array.from({ length: 1000 }, (_, i) => product({ ProductID: 'D' + stamp + String(i).padStart(3, '0') }))
      const { data } = await call(model, 'create', '/ProductMassInsertSet', { MassInsertID: stamp, ToProducts: list }, {})
      same(data.ToProducts.results.map((p) => p.ProductID), list.map((p) => p.ProductID), 'products')
      same(await count(model) - before, 1000, 'growth')
    },
    async 'creates, updates and deletes in one changeset' () {
      const model = await open()
      const [one, two] = [(await call(model, 'create', '/ProductSet', product(), {})).data, (await call(model, 'create', '/ProductSet', product(), {})).data]
      model.setDeferredGroups(['mixed'])
      const at = { groupId: 'mixed', changeSetId: 'all' }
      const fresh = product()
      model.create('/ProductSet', fresh, at)
      model.update('/' + model.getKey(one), { Name: 'Changed' }, at)
      model.remove('/' + model.getKey(two), at)
      const answer = await submit(model, 'mixed')
      same(answer.__batchResponses[0].__changeResponses.map((r) => r.statusCode), ['201', '204', '204'], 'status codes')
      const found = await call(model, 'read', '/ProductSet', { filters: [one, two, fresh].map((p) => new Filter('ProductID', 'EQ', p.ProductID)) })
      same(found.data.results.map((p) => [p.ProductID, p.Name]).sort(), [[one.ProductID, 'Changed'], [fresh.ProductID, 'Notebook']].sort(), 'products')
    },
    async 'paging through a list binding' () {
      const model = await open()
      const binding = model.bindList('/ProductSet', undefined, [new Sorter('ProductID')], [new Filter('ProductID', 'StartsWith', 'HT-')])
      binding.initialize()
      const page = (start) => new Promise((resolve) => {
        const contexts = binding.getContexts(start, 5, 0)
        if (contexts.length === 5 && !contexts.dataRequested) return resolve(contexts)
        binding.attachEventOnce('dataReceived', () => setTimeout(() => resolve(binding.getContexts(start, 5, 0)), 0))
      })
      const first = (await page(0)).map((c) => c.getProperty('ProductID'))
      const second = (await page(5)).map((c) => c.getProperty('ProductID'))
      same(first.length + second.length, 10, 'rows')
      same([...first, ...second].join(), [...first, ...second].sort().join(), 'order')
      if (binding.getLength() < 10 || !binding.isLengthFinal()) throw new Error('length ' + binding.getLength())
    },
    async 'expand, navigation and filters' () {
      const model = await open()
      const { data } = await call(model, 'read', '/SalesOrderSet', { urlParameters: { $expand: 'ToLineItems/ToProduct,ToBusinessPartner', $top: '3' } })
      for (const order of data.results) {
        same(order.ToBusinessPartner.BusinessPartnerID, order.CustomerID, 'customer')
        for (const item of order.ToLineItems.results) same(item.ToProduct.ProductID, item.ProductID, 'product')
      }
      const found = await call(model, 'read', '/ProductSet', {
        filters: [new Filter({ filters: [new Filter('Price', 'BT', '1', '100000'), new Filter('Category', 'Contains', 'o'), new Filter({ path: 'Category', operator: 'EQ', value1: 'Notebooks', caseSensitive: false })], and: true })],
        sorters: [new Sorter('Price', true)],
      })
      if (!found.data.results.length) throw new Error('nothing found')
    },
    async 'update by MERGE with its ETag' () {
      const model = await open()
      const { data } = await call(model, 'create', '/ProductSet', product(), {})
      const path = model.getKey(data)
      await call(model, 'read', '/' + path, {})
      model.setProperty('/' + path + '/Price', '77.000')
      const answer = await submit(model)
      same(answer.__batchResponses[0].__changeResponses[0].statusCode, '204', 'status')
      const again = await call(model, 'read', '/' + path, {})
      same(again.data.Price, '77.000', 'price')
      same(again.data.Name, 'Notebook', 'name')
    },
    async 'a stale ETag is refused' () {
      const model = await open({ useBatch: false })
      const { data } = await call(model, 'create', '/ProductSet', product(), {})
      const path = '/' + model.getKey(data)
      const stale = data.__metadata.etag
      await new Promise((r) => setTimeout(r, 20))
      await call(model, 'update', path, { Name: 'one' }, { eTag: stale })
      let status
      await new Promise((done) => model.update(path, { Name: 'two' }, { eTag: stale, success: done, error: (e) => { status = e.statusCode; done() } }))
      same(Number(status), 412, 'status')
    },
    async 'update and delete without batch' () {
      const model = await open({ useBatch: false })
      const { data } = await call(model, 'create', '/ProductSet', product(), {})
      const path = '/' + model.getKey(data)
      await call(model, 'update', path, { Name: 'Renamed' }, { eTag: '*' })
      same((await call(model, 'read', path, {})).data.Name, 'Renamed', 'name')
      await call(model, 'remove', path, { eTag: '*' })
      let status
      await new Promise((done) => model.read(path, { success: done, error: (e) => { status = e.statusCode; done() } }))
      same(Number(status), 404, 'status')
    },
    async 'delete in a batch' () {
      const model = await open()
      const { data } = await call(model, 'create', '/ProductSet', product(), {})
      await call(model, 'remove', '/' + model.getKey(data), {})
    },
    async 'function import' () {
      const model = await open()
      const order = await call(model, 'create', '/SalesOrderSet', { CustomerID: '0100000000', CurrencyCode: 'EUR', ToLineItems: [{ ProductID: 'HT-1000', Quantity: '1.000', DeliveryDate: new Date(1700000000000) }] }, {})
      const { data } = await call(model, 'callFunction', '/SalesOrder_Confirm', { method: 'POST', urlParameters: { SalesOrderID: order.data.SalesOrderID } })
      same(data.SalesOrderID, order.data.SalesOrderID, 'order')
      if (data.LifecycleStatus === order.data.LifecycleStatus) throw new Error('its status is what it was: ' + data.LifecycleStatus)
    },
    async 'text beyond the basic plane' () {
      const model = await open()
      const { data } = await call(model, 'create', '/ProductSet', product({ Name: name }), {})
      same(data.Name, name, 'created')
      same((await call(model, 'read', '/' + model.getKey(data), {})).data.Name, name, 'read')
      const found = await call(model, 'read', '/ProductSet', { filters: [new Filter('ProductID', 'EQ', data.ProductID)] })
      same(found.data.results.length, 1, 'found')
    },
    async 'an expired token is fetched again' () {
      const model = await open()
      await call(model, 'create', '/ProductSet', product(), {})
      await window.forgetCookies()
      await call(model, 'create', '/ProductSet', product(), {})
    },
    async 'created and read in one batch' () {
      const model = await open()
      model.setDeferredGroups(['both'])
      const p = product()
      const read = call(model, 'read', "/ProductSet('" + p.ProductID + "')", { groupId: 'both' })
      model.create('/ProductSet', p, { groupId: 'both' })
      await submit(model, 'both')
      same((await read).data.Name, p.Name, 'what is read behind the changes')
    },
  }
})
