// @path /api/snc/test_api_18
// @method GET
// @name Test API 18
(function process(request, response) {
  gs.sleep(250);
  response.setBody({response: "Test API 18"});
})(request, response);
