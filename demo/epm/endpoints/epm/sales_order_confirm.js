// @path   /api/epm/sales_order/confirm
// @method POST
// @name   Confirm a sales order
// @roles  epm_user
//
// A new order is in progress from now on. Body: {"SalesOrderID":"0500000000"}; the answer is the key.
(function process(request, response) {
  var id = String(request.body.data.SalesOrderID || "");
  var order = new GlideRecord("sales_order");
  if (!order.get(id)) {
    throw new sn_ws_err.NotFoundError("There is no sales order '" + id + "'");
  }
  var state = order.getDisplayValue("lifecycle_status");
  if (order.getValue("lifecycle_status") != "N") {
    throw new sn_ws_err.BadRequestError("Sales order " + id + " is " + state + "; only a new one can be confirmed");
  }
  order.setValue("lifecycle_status", "P");
  if (!order.update()) { // somebody else was faster
    throw new sn_ws_err.BadRequestError("Sales order " + id + ": " + order.getLastErrorMessage());
  }
  response.setBody({SalesOrderID: id});
})(request, response);
