#include "skein/base/text/json_text.h"

#include <gtest/gtest.h>

#include "skein/base/error.h"

namespace skein {
namespace {

constexpr const char* kLatin1 = "/data/j\xf6rg";

TEST(JsonText, IsUtf8WhateverItHolds) {
  const Json json = {{"path", kLatin1}, {"steps", 3}};
  EXPECT_EQ(json_text(json), "{\"path\":\"/data/j\ufffdrg\",\"steps\":3}");
  EXPECT_EQ(ascii_json_text(OrderedJson(kLatin1)), "\"/data/j\\ufffdrg\"");
  EXPECT_EQ(json_text(OrderedJson{{"z", 1}, {"a", "ö"}}, 1), "{\n \"z\": 1,\n \"a\": \"ö\"\n}");
}

TEST(JsonText, TheSameTextWhereEverythingIsUtf8) {
  const Json json = {{"text", "naïve 漢字"}, {"list", {1, 2.5, nullptr, true}}};
  EXPECT_EQ(exact_json(json, "x"), json.dump());
  EXPECT_EQ(exact_json(json, "x", 2), json.dump(2));
  EXPECT_EQ(json_text(json, 2), json.dump(2));
}

std::string refused(const Json& json) {
  try {
    exact_json(json, "manifest.json");
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInvalid);
    return error.what();
  }
  ADD_FAILURE() << "was written";
  return "";
}

TEST(JsonText, WhatIsReadBackNamesTheTextThatCannotBeWritten) {
  const std::string at = refused({{"parent", {{"step", 1}, {"path", kLatin1}}}});
  EXPECT_EQ(at.find("manifest.json: parent.path: '/data/j\\xf6rg' is not UTF-8"), 0u) << at;
  EXPECT_EQ(refused(Json::array({"a", "\x9b"})).find("manifest.json: 1: '\\x9b'"), 0u);
  EXPECT_EQ(refused({{"k\xff", 1}}).find("manifest.json: k\\xff: 'k\\xff'"), 0u);
  EXPECT_EQ(refused("\xff").find("manifest.json: '\\xff'"), 0u);
}

}  // namespace
}  // namespace skein
