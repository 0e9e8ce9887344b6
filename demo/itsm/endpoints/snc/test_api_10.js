// @path /api/snc/test_api_10
// @method GET
// @name Test API 10
(function process(request, response) {
  gs.sleep(250);
  response.setBody({response: "Test API 10"});
})(request, response);
