// @path /api/snc/test_api_7
// @method GET
// @name Test API 7
(function process(request, response) {
  gs.sleep(250);
  response.setBody({response: "Test API 7"});
})(request, response);
