// @path /api/snc/test_api_14
// @method GET
// @name Test API 14
(function process(request, response) {
  gs.sleep(250);
  response.setBody({response: "Test API 14"});
})(request, response);
