// @path /api/snc/test_api_8
// @method GET
// @name Test API 8
(function process(request, response) {
  gs.sleep(250);
  response.setBody({response: "Test API 8"});
})(request, response);
