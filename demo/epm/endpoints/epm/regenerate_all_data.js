// @path   /api/epm/regenerate_all_data
// @method POST
// @name   Regenerate all data
// @roles  admin
//
// Brings the sample back: all sales orders go, and the partners and products that were added to those of the sample; then there are
// as many new sales orders as asked for. Body: {"NoOfSalesOrders":50}
(function process(request, response) {
  var count = Number(request.body.data.NoOfSalesOrders || 0);
  if (!(count >= 0 && count <= 500 && count % 1 == 0)) {
    throw new sn_ws_err.BadRequestError("NoOfSalesOrders must be a whole number from 0 to 500");
  }

  // remove deletes the records that the query finds, by the thousand, and returns how many there were.
  function remove(table, query) {
    for (var gone = 0; ; gone += 1000) {
      var list = new GlideRecord(table);
      list.addEncodedQuery(query);
      list.setLimit(1000);
      list.deleteMultiple();
      if (list.getLastErrorMessage()) {
        throw new sn_ws_err.BadRequestError("A record of " + table + " cannot be deleted: " + list.getLastErrorMessage());
      }
      if (list.getRowCount() < 1000) {
        return gone + list.getRowCount();
      }
    }
  }

  // keys returns the keys of the records that the query finds.
  function keys(table, query) {
    var found = [];
    var list = new GlideRecord(table);
    list.addEncodedQuery(query);
    list.query();
    while (list.next()) {
      found.push(list.getUniqueValue());
    }
    return found;
  }

  function insert(record) {
    var key = record.insert();
    if (!key) {
      throw new sn_ws_err.BadRequestError("A record of " + record.getTableName() + " cannot be made: " + record.getLastErrorMessage());
    }
    return key;
  }

  var orders = remove("sales_order", "sales_order_idISNOTEMPTY");
  var products = remove("product", "product_id<HT-1000^ORproduct_id>HT-1119");
  var partners = remove("business_partner", "business_partner_id>0100000045");

  var customers = keys("business_partner", "business_partner_role=01^ORDERBYbusiness_partner_id");
  var offers = keys("product", "currency_code=EUR^price>0^ORDERBYproduct_id");
  if (count > 0 && (customers.length == 0 || offers.length == 0)) {
    throw new sn_ws_err.BadRequestError("There are no customers or no products to make sales orders of");
  }
  for (var i = 0; i < count; i++) {
    var order = new GlideRecord("sales_order");
    order.setValue("customer_id", customers[i * 7 % customers.length]);
    order.setValue("currency_code", "EUR");
    order.setValue("note", "Regenerated order " + (i + 1));
    var id = insert(order);
    for (var k = 0; k <= i % 3; k++) {
      var item = new GlideRecord("sales_order_line_item");
      item.setValue("sales_order_id", id);
      item.setValue("product_id", offers[(i * 11 + k * 5) % offers.length]);
      item.setValue("quantity", 1 + (i + k) % 5);
      var due = new GlideDateTime();
      due.addDaysUTC(7 + i % 14);
      item.setValue("delivery_date", due.getValue());
      insert(item);
    }
  }
  response.setBody({String: orders + " sales orders, " + products + " products and " + partners + " business partners deleted; " + count + " sales orders created"});
})(request, response);
