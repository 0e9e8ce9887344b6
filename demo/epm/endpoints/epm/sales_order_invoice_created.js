// @path   /api/epm/sales_order/invoice_created
// @method POST
// @name   Invoice a sales order
// @roles  epm_user
//
// An order in progress is paid; if it is delivered, that closes it. Body: {"SalesOrderID":"0500000000"}; the answer is the key.
(function process(request, response) {
  var id = String(request.body.data.SalesOrderID || "");
  var order = new GlideRecord("sales_order");
  if (!order.get(id)) {
    throw new sn_ws_err.NotFoundError("There is no sales order '" + id + "'");
  }
  var state = order.getDisplayValue("lifecycle_status");
  if (state != "In Progress") {
    throw new sn_ws_err.BadRequestError("Sales order " + id + " is " + state + "; only one in progress can be invoiced");
  }
  if (order.getValue("billing_status")) {
    throw new sn_ws_err.BadRequestError("Sales order " + id + " is invoiced already");
  }
  order.setValue("billing_status", "P");
  if (!order.update()) { // somebody else was faster
    throw new sn_ws_err.BadRequestError("Sales order " + id + ": " + order.getLastErrorMessage());
  }
  response.setBody({SalesOrderID: id});
})(request, response);
