// @path /api/snc/test_api_3
// @method GET
// @name Test API 3
(function process(request, response) {
  gs.sleep(250);
  response.setBody({response: "Test API 3"});
})(request, response);
