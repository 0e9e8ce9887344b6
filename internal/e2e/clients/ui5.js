sap.ui.define([], function () {
  'use strict'

  // What the scenarios of all models share.
  let serial = 0
  const stamp = Date.now().toString(36).toUpperCase().slice(-6)
  return {
    stamp,
    same (got, want, what) {
      if (JSON.stringify(got) !== JSON.stringify(want)) throw new Error(`${what}: ${JSON.stringify(got)}, want ${JSON.stringify(want)}`)
    },
    product (more) {
      return Object.assign({
        ProductID: 'U' + stamp.slice(-5) + String(++serial).padStart(4, '0'), TypeCode: 'PR', Category: 'Notebooks', Name: 'Notebook', SupplierID: '0100000000',
        TaxTarifCode: 1, MeasureUnit: 'EA', CurrencyCode: 'EUR', Price: '9.500',
      }, more)
    },
    // A Name that takes every trap of encodings: outside the basic plane, combining, quotes of both kinds, a backslash.
    name: 'Note 😀 ä é ß 漢字 𝒳 "quoted" \\ \'single\'',
  }
})
