sap.ui.define([
  'weir/ui5', 'sap/ui/model/odata/v4/ODataModel', 'sap/ui/model/Filter', 'sap/ui/model/Sorter',
], function (shared, ODataModel, Filter, Sorter) {
  'use strict'

  const { stamp, same, product, name } = shared
  const root = '/sap/opu/odata4/iwbep/gwsample/default/iwbep/GWSAMPLE_BASIC/0001/'
  const open = (settings) => new ODataModel(Object.assign({ serviceUrl: root, operationMode: 'Server' }, settings))
  const read = (model, path, parameters) => model.bindContext(path, undefined, parameters).requestObject()
  const found = (model, path) => read(model, path).then(() => true, () => false)
  const path = (p) => `/ProductSet('${p.ProductID || p.getProperty('ProductID')}')`
  // A list that shows nothing: what is created in it is all there is.
  const products = (model, group) => model.bindList('/ProductSet', undefined, [], [new Filter('ProductID', 'EQ', 'none')], group && { $$updateGroupId: group })
  // The model repeats a failed creation for ever; a scenario ends with the first.
  const create = async (list, properties) => {
    const context = list.create(properties, true)
    const refused = new Promise((_, no) => list.attachCreateCompleted((e) => e.getParameter('success') || no(new Error('a creation is refused'))))
    await Promise.race([context.created(), refused])
    return context
  }

  return {
    async 'create 1,000 in one changeset' () {
      const model = open()
      const list = products(model, 'mass')
      const made = []
      for (let i = 0; i < 1000; i++) made.push(list.create(product({ ProductID: 'N' + stamp + String(i).padStart(3, '0') }), true))
      await model.submitBatch('mass')
      same(made.filter((c) => c.isTransient()).length, 0, 'refused')
      await Promise.all(made.map((c) => c.created()))
      same(await found(model, path(made[999])), true, 'the last one is there')
    },
    async 'a failing changeset leaves nothing and blames one' () {
      const model = open()
      const told = []
      model.attachMessageChange((e) => told.push(...e.getParameter('newMessages')))
      const list = products(model, 'bad')
      const [one, twice] = [product(), product()]
      const contexts = [one, twice, twice].map((p) => list.create(Object.assign({}, p), true))
      contexts.forEach((c) => c.created().catch(() => {}))
      await model.submitBatch('bad')
      same(contexts.filter((c) => !c.isTransient()).length, 0, 'stored')
      same(told.map((m) => m.message), [`${twice.ProductID} exists already`], 'messages')
      same(await found(model, path(one)), false, 'the first one is there')
      await Promise.all(contexts.map((c) => c.delete()))
    },
    async 'deep create' () {
      const model = open({ autoExpandSelect: true })
      const list = model.bindList('/SalesOrderSet', undefined, [], [new Filter('SalesOrderID', 'EQ', 'none')], { $count: true, $select: 'SalesOrderID,CustomerID,Note,GrossAmount', $$updateGroupId: 'deep' })
      await list.requestContexts(0, 1)
      const order = list.create({ CustomerID: '0100000000', CurrencyCode: 'EUR', Note: 'deep' }, true)
      const items = model.bindList('ToLineItems', order, [], [], { $count: true, $select: 'SalesOrderID,ItemPosition,Note' })
      for (const n of [3, 2, 1]) { // what is created last is sent first
        const item = items.create({ ProductID: 'HT-1000', Note: 'item ' + n, Quantity: '2.000', DeliveryDate: '2027-01-31T00:00:00Z' }, true, true)
        item.created().catch(() => {}) // the context of an item ends with the creation of its order
      }
      const refused = new Promise((_, no) => list.attachCreateCompleted((e) => e.getParameter('success') || no(new Error('the creation is refused'))))
      await model.submitBatch('deep')
      await Promise.race([order.created(), refused])
      const id = order.getProperty('SalesOrderID')
      const got = await read(model, `/SalesOrderSet('${id}')`, { $expand: { ToLineItems: { $orderby: 'ItemPosition' } } })
      same(got.ToLineItems.map((i) => i.Note), ['item 1', 'item 2', 'item 3'], 'items')
      if (!(got.GrossAmount > 0)) throw new Error('amount ' + got.GrossAmount)
      same(order.getProperty('GrossAmount'), got.GrossAmount, 'amount in the answer')
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
    async 'filters' () {
      const model = open()
      const list = model.bindList('/ProductSet', undefined, [new Sorter('Price', true), new Sorter('ProductID')], [
        new Filter({
          filters: [
            new Filter('Price', 'BT', '1', '100000'), new Filter('Category', 'Contains', 'o'), new Filter('ProductID', 'NotStartsWith', 'X'),
            new Filter({ path: 'Category', operator: 'EQ', value1: 'notebooks', caseSensitive: false }),
          ],
          and: true,
        }),
      ])
      const rows = (await list.requestContexts(0, 10)).map((c) => c.getObject())
      if (!rows.length) throw new Error('nothing found')
      for (const p of rows) same(p.Category, 'Notebooks', 'category')
    },
    async 'expand with options and a condition on the items' () {
      const model = open()
      const list = model.bindList('/SalesOrderSet', undefined, [], [new Filter({ path: 'ToLineItems', operator: 'Any', variable: 'i', condition: new Filter('i/Quantity', 'GT', 2) })], {
        $expand: { ToLineItems: { $select: ['ProductID', 'Quantity'], $orderby: 'ItemPosition desc', $expand: { ToProduct: { $select: 'ProductID' } } }, ToBusinessPartner: true },
      })
      const orders = (await list.requestContexts(0, 5)).map((c) => c.getObject())
      if (!orders.length) throw new Error('no orders')
      for (const o of orders) {
        same(o.ToBusinessPartner.BusinessPartnerID, o.CustomerID, 'customer')
        if (!o.ToLineItems.some((i) => i.Quantity > 2)) throw new Error('quantities ' + o.ToLineItems.map((i) => i.Quantity))
        for (const i of o.ToLineItems) same(i.ToProduct.ProductID, i.ProductID, 'product')
      }
    },
    async 'update and delete' () {
      const model = open()
      const context = await create(products(model), product())
      await context.setProperty('Price', '77.000')
      const at = path(context)
      same(Number((await read(model, at)).Price), 77, 'price')
      await context.delete('$auto')
      same(await found(model, at), false, 'found afterwards')
    },
    async 'a stale ETag is refused' () {
      const model = open()
      const context = await create(products(model), product())
      const other = open().bindContext(path(context)).getBoundContext()
      await other.requestObject()
      await other.setProperty('Name', 'theirs')
      let status
      await context.setProperty('Name', 'ours', '$direct', true).catch((e) => { status = e.status })
      same(status, 412, 'status')
      same((await read(model, path(context))).Name, 'theirs', 'name')
    },
    async 'action import' () {
      const model = open()
      const orders = model.bindList('/SalesOrderSet', undefined, [], [new Filter('SalesOrderID', 'EQ', 'none')])
      const order = await create(orders, { CustomerID: '0100000000', CurrencyCode: 'EUR' })
      const action = model.bindContext('/SalesOrder_Confirm(...)')
      action.setParameter('SalesOrderID', order.getProperty('SalesOrderID'))
      await action.invoke()
      const done = action.getBoundContext().getObject()
      same(done.SalesOrderID, order.getProperty('SalesOrderID'), 'order')
      same(done.LifecycleStatus, 'P', 'status')
    },
    async 'text beyond the basic plane' () {
      const model = open()
      const context = await create(products(model), product({ Name: name }))
      same(context.getProperty('Name'), name, 'created')
      same((await read(model, path(context))).Name, name, 'read')
    },
    async 'an expired token is fetched again' () {
      const model = open()
      await create(products(model), product())
      await window.forgetCookies()
      await create(products(model), product())
    },
    async 'aggregation by $apply' () {
      const model = open()
      const list = model.bindList('/ProductSet', undefined, [], [], { $apply: 'groupby((Category),aggregate(Price with average as Mean,$count as Products))' })
      const rows = (await list.requestContexts(0, 100)).map((c) => c.getObject())
      if (rows.length < 2 || !rows.every((r) => r.Category && Number(r.Products) > 0)) throw new Error(JSON.stringify(rows).slice(0, 300))
    },
  }
})
