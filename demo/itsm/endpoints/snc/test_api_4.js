// @path /api/snc/test_api_4
// @method GET
// @name Test API 4
(function process(request, response) {
  gs.sleep(250);
  response.setBody({response: "Test API 4"});
})(request, response);
