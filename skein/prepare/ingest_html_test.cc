// Pages of HTML among the inputs are read, and named.
#include <gmock/gmock.h>

#include "skein/prepare/read/html.h"
#include "tests/data/ingest_testing.h"

namespace skein {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class IngestHtml : public Ingest {};

TEST(Html, IsWhatBeginsAsAPageDoes) {
  for (const char* page :
       {"<!doctype html><p>", "<!DOCTYPE HTML PUBLIC \"x\">", " \n<html>",
        "\xef\xbb\xbf<HTML lang=\"en\">",
        "<?xml version=\"1.0\"?>\n<!-- made by x -->\n<!DOCTYPE html>", "<html"}) {
    EXPECT_TRUE(is_html(page)) << page;
  }
  for (const char* text : {"", " ", "text", "a <html>", "<xml>", "<htmlx>", "<!-- no end",
                           "<?xml no end", "<!doctype svg>", "<p>", "# <html>"}) {
    EXPECT_FALSE(is_html(text)) << text;
  }
}

TEST_F(IngestHtml, FilesAreNamedAndTakenWithTheirTags) {
  const std::string page = "<!DOCTYPE html>\n<html><body>text</body></html>\n";
  write("in/a.html", page);
  write("in/b", page);
  write("in/c.jsonl", "{\"text\": \"plain\"}\n{\"text\": \"<html><p>text\"}\n");
  write("in/d.html", "no page\n");
  EXPECT_EQ(ingested({folder_ / "in"}),
            (Documents{page, page, "plain", "<html><p>text", "no page\n"}));
  EXPECT_THAT(report_.notes,
              ElementsAre(AllOf(HasSubstr("in/a.html and 2 others: HTML"),
                                HasSubstr("extract the text first")),
                          HasSubstr("in/a.html: a plain text file beside tables or JSON")));
  EXPECT_EQ(ingested({folder_ / "in/a.html"}, {.as_text = true}), Documents{page});
  EXPECT_THAT(report_.notes, IsEmpty());
  EXPECT_EQ(ingested({folder_ / "in/a.html"}, {.format = InputFormat::kText}), Documents{page});
  EXPECT_THAT(report_.notes, IsEmpty());
}

}  // namespace
}  // namespace skein
