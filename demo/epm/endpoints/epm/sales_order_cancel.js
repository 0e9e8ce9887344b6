// @path   /api/epm/sales_order/cancel
// @method POST
// @name   Cancel a sales order
// @roles  epm_user
//
// An order that is neither invoiced nor delivered is canceled. Body: {"SalesOrderID":"0500000000"}; the answer is the key.
(function process(request, response) {
  var id = String(request.body.data.SalesOrderID || "");
  var order = new GlideRecord("sales_order");
  if (!order.get(id)) {
    throw new sn_ws_err.NotFoundError("There is no sales order '" + id + "'");
  }
  var state = order.getDisplayValue("lifecycle_status");
  if (state != "New" && state != "In Progress") {
    throw new sn_ws_err.BadRequestError("Sales order " + id + " is " + state + " and cannot be canceled");
  }
  if (order.getValue("billing_status") || order.getValue("delivery_status")) {
    throw new sn_ws_err.BadRequestError("Sales order " + id + " is invoiced or delivered and cannot be canceled");
  }
  order.setValue("lifecycle_status", "X");
  if (!order.update()) { // somebody else was faster
    throw new sn_ws_err.BadRequestError("Sales order " + id + ": " + order.getLastErrorMessage());
  }
  response.setBody({SalesOrderID: id});
})(request, response);
