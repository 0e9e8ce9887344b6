// @path /api/snc/test_api_12
// @method GET
// @name Test API 12
(function process(request, response) {
  gs.sleep(250);
  response.setBody({response: "Test API 12"});
})(request, response);
