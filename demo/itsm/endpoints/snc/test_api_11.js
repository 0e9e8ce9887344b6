// @path /api/snc/test_api_11
// @method GET
// @name Test API 11
(function process(request, response) {
  gs.sleep(250);
  response.setBody({response: "Test API 11"});
})(request, response);
