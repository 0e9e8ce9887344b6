// @path /api/snc/test_api_13
// @method GET
// @name Test API 13
(function process(request, response) {
  gs.sleep(250);
  response.setBody({response: "Test API 13"});
})(request, response);
