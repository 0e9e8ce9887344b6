// @path /api/snc/test_api_20
// @method GET
// @name Test API 20
(function process(request, response) {
  gs.sleep(250);
  response.setBody({response: "Test API 20"});
})(request, response);
