namespace epm;

entity Products {
  key ProductID : String(10);
  TypeCode      : String(2) not null;
  Category      : String(40) not null;
  Name          : String(255) not null;
  Description   : String(255);
  SupplierID    : String(10) not null;
  TaxTarifCode  : Integer not null;
  MeasureUnit   : String(3) not null;
  WeightMeasure : Decimal(13, 3);
  WeightUnit    : String(3);
  CurrencyCode  : String(5) not null;
  Price         : Decimal(16, 3);
  Width         : Decimal(13, 3);
  Depth         : Decimal(13, 3);
  Height        : Decimal(13, 3);
  DimUnit       : String(3);
  CreatedAt     : Timestamp @cds.on.insert : $now;
  ChangedAt     : Timestamp @cds.on.insert : $now  @cds.on.update : $now;
  insert        : Association to MassInserts;
}

entity MassInserts {
  key ID     : String(36);
  ToProducts : Composition of many Products on ToProducts.insert = $self;
}
