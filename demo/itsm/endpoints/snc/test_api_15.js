// @path /api/snc/test_api_15
// @method GET
// @name Test API 15
(function process(request, response) {
  gs.sleep(250);
  response.setBody({response: "Test API 15"});
})(request, response);
