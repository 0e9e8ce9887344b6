// Makes the tables of db.sqlite. The command that does so comes with development tools that nothing else here needs.
const cds = require('@sap/cds')

async function deploy() {
  const model = await cds.load('*')
  cds.model = cds.linked(model)
  await cds.deploy(model).to(await cds.connect.to('db'))
}

deploy().then(() => process.exit(0), (err) => {
  console.error(err)
  process.exit(1)
})
