// @path /api/snc/test_api_6
// @method GET
// @name Test API 6
(function process(request, response) {
  gs.sleep(250);
  response.setBody({response: "Test API 6"});
})(request, response);
