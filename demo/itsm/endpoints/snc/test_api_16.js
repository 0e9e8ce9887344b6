// @path /api/snc/test_api_16
// @method GET
// @name Test API 16
(function process(request, response) {
  gs.sleep(250);
  response.setBody({response: "Test API 16"});
})(request, response);
