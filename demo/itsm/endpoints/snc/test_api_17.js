// @path /api/snc/test_api_17
// @method GET
// @name Test API 17
(function process(request, response) {
  gs.sleep(250);
  response.setBody({response: "Test API 17"});
})(request, response);
