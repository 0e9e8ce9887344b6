// @path /api/snc/test_api_1
// @method GET
// @name Test API 1
(function process(request, response) {
  gs.sleep(250);
  response.setBody({response: "Test API 1"});
})(request, response);
