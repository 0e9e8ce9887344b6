// On a page that is opened with ?sap-statistics=true.
sap.ui.define([
  'weir/ui5', 'sap/ui/model/odata/v2/ODataModel', 'sap/ui/model/odata/v4/ODataModel', 'sap/ui/performance/trace/Interaction',
], function (shared, V2, V4, Interaction) {
  'use strict'

  const { same } = shared

  // read is what UI5 has read of the statistics of the $batch requests that work sends.
  const read = async (work) => {
    if (!Interaction.getActive()) await Interaction.setActive(true)
    Interaction.start('work')
    await work()
    await new Promise((r) => setTimeout(r, 0)) // UI5 reads them behind the model's own handler
    const all = Interaction.getAll(true)
    Interaction.clear()
    return all.flatMap((i) => i.sapStatistics).filter((s) => s.url.includes('$batch'))
  }
  const check = (statistics) => {
    same(statistics.length, 1, 'answers with statistics')
    if (!statistics[0].url.includes('sap-statistics=true')) throw new Error(statistics[0].url)
    const layers = Object.fromEntries(statistics[0].statistics.split(',').map((p) => p.split('=')).map(([k, v]) => [k, Number(v)]))
    same(layers.gwhub + layers.gwrfcoh + layers.gwbe + layers.gwapp + layers.gwnongw, layers.gwtotal, 'sum')
    same(layers.total, layers.gwtotal, 'total')
  }

  return {
    async 'V2' () {
      const model = new V2({ serviceUrl: '/sap/opu/odata/IWBEP/GWSAMPLE_BASIC/' })
      await model.metadataLoaded(true)
      check(await read(() => new Promise((success, error) => model.read('/ProductSet', { urlParameters: { $top: '2' }, success, error }))))
    },
    async 'V4' () {
      const model = new V4({ serviceUrl: '/sap/opu/odata4/iwbep/gwsample/default/iwbep/GWSAMPLE_BASIC/0001/' })
      await model.getMetaModel().requestObject('/')
      check(await read(() => model.bindList('/ProductSet').requestContexts(0, 2)))
    },
  }
})
