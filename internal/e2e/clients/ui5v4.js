sap.ui.define(['sap/ui/model/odata/v4/ODataModel', 'sap/ui/model/Filter', 'sap/ui/model/Sorter'], function (ODataModel, Filter, Sorter) {
  'use strict'

  const root = '/sap/opu/odata4/iwbep/gwsample/default/iwbep/GWSAMPLE_BASIC/0001/'
  const same = (got, want, what) => {
    if (JSON.stringify(got) !== JSON.stringify(want)) throw new Error(`${what}: ${JSON.stringify(got)}, want ${JSON.stringify(want)}`)
  }
  let serial = 0
  const stamp = Date.now().toString(36).toUpperCase().slice(-6)
  const id = () => 'V' + stamp + String(++serial).padStart(3, '0').slice(-3)
  const product = (more) => Object.assign({
    ProductID: id(), TypeCode: 'PR', Category: 'Notebooks', Name: 'Notebook', SupplierID: '0100000000', TaxTarifCode: 1, MeasureUnit: 'EA',
    CurrencyCode: 'EUR', Price: '9.500',
  }, more)
  const open = () => new ODataModel({ serviceUrl: root, operationMode: 'Server', autoExpandSelect: false })
  const read = (model, path, parameters) => model.bindContext(path, undefined, parameters).requestObject()

  return {
    async 'create 1,000 in one changeset' () {
      const model = open()
      const list = model.bindList('/ProductSet', undefined, [], [], { $$updateGroupId: 'mass', $filter: "ProductID eq 'none'" })
      const base = 'N' + stamp
      const made = []
      for (let i = 0; i < 1000; i++) made.push(list.create(product({ ProductID: base + String(i).padStart(3, '0') }), true))
      await model.submitBatch('mass')
      await Promise.all(made.map((c) => c.created()))
      same(made[999].getProperty('ProductID'), base + '999', 'the last one')
      same(made.every((c) => !c.isTransient()), true, 'all stored')
    },
    async 'a failing changeset leaves nothing' () {
      const model = open()
      const list = model.bindList('/ProductSet', undefined, [], [], { $$updateGroupId: 'bad', $filter: "ProductID eq 'none'" })
      const twice = product()
      const other = product()
      const contexts = [other, twice, twice].map((p) => list.create(Object.assign({}, p), true))
      await model.submitBatch('bad')
      same(contexts.some((c) => !c.isTransient()), false, 'any stored')
      let found = true
      await read(model, `/ProductSet('${other.ProductID}')`).catch(() => { found = false })
      same(found, false, 'the first one')
      contexts.forEach((c) => c.created().catch(() => {}))
      model.resetChanges('bad')
    },
    async 'deep create' () {
      const model = open()
      const list = model.bindList('/SalesOrderSet', undefined, [], [], { $expand: { ToLineItems: true }, $$updateGroupId: 'deep', $top: 1 })
      const context = list.create({
        CustomerID: '0100000000', CurrencyCode: 'EUR', Note: 'deep',
        ToLineItems: [10, 20, 30].map((n) => ({ ProductID: 'HT-1000', Note: 'item ' + n, Quantity: '2.000', QuantityUnit: 'EA', DeliveryDate: '2026-01-31T00:00:00Z' })),
      }, true)
      await model.submitBatch('deep')
      await context.created()
      const order = context.getObject()
      const got = await read(model, `/SalesOrderSet('${order.SalesOrderID}')`, { $expand: { ToLineItems: { $orderby: 'ItemPosition' } } })
      same(got.ToLineItems.map((i) => i.Note), ['item 10', 'item 20', 'item 30'], 'items')
    },
    async 'paging through a list binding' () {
      const model = open()
      const list = model.bindList('/ProductSet', undefined, [new Sorter('ProductID')], [new Filter('ProductID', 'StartsWith', 'HT-')], { $count: true })
      const first = (await list.requestContexts(0, 5)).map((c) => c.getProperty('ProductID'))
      const second = (await list.requestContexts(5, 5)).map((c) => c.getProperty('ProductID'))
      same(first.length + second.length, 10, 'rows')
      same([...first, ...second].join(), [...first, ...second].sort().join(), 'order')
      if (list.getCount() < 10) throw new Error('count ' + list.getCount())
    },
    async 'expand with options and lambda' () {
      const model = open()
      const list = model.bindList('/SalesOrderSet', undefined, [], [new Filter({ path: 'ToLineItems', operator: 'Any', variable: 'i', condition: new Filter('i/Quantity', 'GT', 0) })], {
        $expand: { ToLineItems: { $select: ['ProductID', 'Quantity'], $top: 2, $orderby: 'ItemPosition desc' }, ToBusinessPartner: true },
      })
      const orders = (await list.requestContexts(0, 5)).map((c) => c.getObject())
      if (!orders.length) throw new Error('no orders')
      for (const o of orders) {
        same(o.ToBusinessPartner.BusinessPartnerID, o.CustomerID, 'customer')
        if (o.ToLineItems.length < 1 || o.ToLineItems.length > 2) throw new Error(o.ToLineItems.length + ' items')
      }
    },
    async 'update and delete' () {
      const model = open()
      const list = model.bindList('/ProductSet', undefined, [], [], { $filter: "ProductID eq 'none'" })
      const context = list.create(product(), true)
      await context.created()
      await context.setProperty('Price', '77.000')
      const path = `/ProductSet('${context.getProperty('ProductID')}')`
      same(Number((await read(model, path)).Price), 77, 'price')
      await context.delete('$auto')
      let found = true
      await read(model, path).catch(() => { found = false })
      same(found, false, 'found afterwards')
    },
    async 'action import' () {
      const model = open()
      const list = model.bindList('/SalesOrderSet', undefined, [], [], { $top: 1 })
      const order = list.create({ CustomerID: '0100000000', CurrencyCode: 'EUR' }, true)
      await order.created()
      const action = model.bindContext('/SalesOrder_Confirm(...)')
      action.setParameter('SalesOrderID', order.getProperty('SalesOrderID'))
      await action.invoke()
      const done = action.getBoundContext().getObject()
      same(done.SalesOrderID, order.getProperty('SalesOrderID'), 'order')
      if (done.LifecycleStatus === order.getProperty('LifecycleStatus')) throw new Error('its status is what it was: ' + done.LifecycleStatus)
    },
    async 'text beyond the basic plane' () {
      const model = open()
      const name = 'Note 😀 ä ß 漢字 𝒳 "quoted" \\ \'single\''
      const list = model.bindList('/ProductSet', undefined, [], [], { $filter: "ProductID eq 'none'" })
      const context = list.create(product({ Name: name }), true)
      await context.created()
      same((await read(model, `/ProductSet('${context.getProperty('ProductID')}')`)).Name, name, 'name')
    },
    async 'an expired token is fetched again' () {
      const model = open()
      const list = model.bindList('/ProductSet', undefined, [], [], { $filter: "ProductID eq 'none'" })
      await list.create(product(), true).created()
      await window.forgetCookies()
      await list.create(product(), true).created()
    },
    async 'aggregation by $apply' () {
      const model = open()
      const list = model.bindList('/ProductSet', undefined, [], [], { $apply: 'groupby((Category),aggregate(Price with average as Mean,$count as Products))' })
      const rows = (await list.requestContexts(0, 100)).map((c) => c.getObject())
      if (rows.length < 2 || !rows.every((r) => r.Category && Number(r.Products) > 0)) throw new Error(JSON.stringify(rows).slice(0, 300))
    },
  }
})
