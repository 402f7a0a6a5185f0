#include "skein/config/run/change_text.h"

#include <gtest/gtest.h>

namespace skein {
namespace {

constexpr const char* kWeb = "(8410 documents, 123675431 bytes, xxh3 90ab12cd)";
constexpr const char* kCode = "(7 documents, 12 bytes, xxh3 00ab12cd)";

std::string both(const std::string& web, const std::string& code) {
  return "web, all (x) " + web + " " + kWeb + ", code " + code + " " + kCode;
}

TEST(ChangeText, SourcesAreReadBack) {
  const std::vector<SourceText> expected = {{"web, all (x)", 0.7, kWeb}, {"code", 1e-07, kCode}};
  EXPECT_EQ(parse_sources(both("0.7", "1e-07")), expected);
  for (const std::string text :
       {"", "none", "web", "web 0.7", "web (8410 documents, 1 bytes, xxh3 90ab12cd)",
        "web x (8410 documents, 1 bytes, xxh3 90ab12cd)", "/a 1 (1 documents, 1 bytes, xxh3 9)",
        "web 0.7 (8410 documents, 1 bytes, xxh3 90ab12cd) and", "web 0.7 (1 documents, "}) {
    EXPECT_FALSE(parse_sources(text)) << text;
  }
}

TEST(ChangeText, FilesMayMove) {
  EXPECT_EQ(path_in(std::string("/a (b)/web.arrow ") + kWeb), "/a (b)/web.arrow");
  EXPECT_EQ(path_in(std::string("s3://b/web.arrow ") + kWeb), "s3://b/web.arrow");
  EXPECT_EQ(path_in("none"), "");
  EXPECT_TRUE(same_value(std::string("/a ") + kWeb, std::string("s3://b/c ") + kWeb));
  EXPECT_FALSE(same_value(std::string("/a ") + kWeb, std::string("/a ") + kCode));
  EXPECT_FALSE(same_value(both("0.7", "1"), both("0.2", "1")));
  EXPECT_TRUE(same_value("128", "128"));
}

TEST(ChangeText, IsShortenedToWeights) {
  EXPECT_EQ(brief_value(both("0.7", "1")), "web, all (x) 0.7, code 1");
  EXPECT_EQ(brief_value(std::string("/web ") + kWeb), std::string("/web ") + kWeb);
}

TEST(ChangeText, OnlyWhatDiffersIsSaid) {
  EXPECT_EQ(different_sources(both("0.7", "1"), both("0.2", "1")),
            "web, all (x) has weight 0.7 there and 0.2 in the configuration");
  const std::string web = std::string("web 1 ") + kWeb, code = std::string("code 2 ") + kCode;
  EXPECT_EQ(different_sources(web, code), "web 1 " + std::string(kWeb) + " is only there, code 2 " +
                                              kCode + " is only in the configuration");
  EXPECT_EQ(different_sources(web, std::string("net 1 ") + kWeb),
            "web 1 " + std::string(kWeb) +
                " is only there, though net is the same text by another name, net 1 " + kWeb +
                " is only in the configuration");
  EXPECT_EQ(different_sources(web + ", " + code, code + ", " + web),
            "the same sources in another order");
  EXPECT_EQ(different_sources(web, std::string("/web ") + kWeb), "");
}

}  // namespace
}  // namespace skein
