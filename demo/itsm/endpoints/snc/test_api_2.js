// @path /api/snc/test_api_2
// @method GET
// @name Test API 2
(function process(request, response) {
  gs.sleep(250);
  response.setBody({response: "Test API 2"});
})(request, response);
