// @path /api/snc/test_api_19
// @method GET
// @name Test API 19
(function process(request, response) {
  gs.sleep(250);
  response.setBody({response: "Test API 19"});
})(request, response);
