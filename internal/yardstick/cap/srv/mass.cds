using epm from '../db/schema';

service Mass @(path : '/odata/v4/mass', requires : 'any') {
  entity Products    as projection on epm.Products;
  entity MassInserts as projection on epm.MassInserts;
}
