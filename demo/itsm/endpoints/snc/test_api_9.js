// @path /api/snc/test_api_9
// @method GET
// @name Test API 9
(function process(request, response) {
  gs.sleep(250);
  response.setBody({response: "Test API 9"});
})(request, response);
