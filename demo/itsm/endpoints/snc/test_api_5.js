// @path /api/snc/test_api_5
// @method GET
// @name Test API 5
(function process(request, response) {
  gs.sleep(250);
  response.setBody({response: "Test API 5"});
})(request, response);
