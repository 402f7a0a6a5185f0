#include "skein/objects/url.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "skein/base/error.h"
#include "tests/error_of.h"

namespace skein {
namespace {

using test::error_of;
using testing::HasSubstr;

TEST(ObjectUrl, HasABucketAndAKey) {
  const ObjectUrl url = parse_object_url("s3://texts/web/part 1.jsonl");
  EXPECT_EQ(url.bucket, "texts");
  EXPECT_EQ(url.key, "web/part 1.jsonl");
  EXPECT_EQ(url.text(), "s3://texts/web/part 1.jsonl");
  EXPECT_EQ(parse_object_url("s3://texts").text(), "s3://texts");
  EXPECT_EQ(parse_object_url("s3://texts/web//").text(), "s3://texts/web");
}

TEST(ObjectUrl, RefusesWhatIsNone) {
  for (const char* text : {"s3://", "s3:///key", "texts/key", "gs://texts/key", "s3://a b/key"}) {
    EXPECT_THAT(error_of([&] { parse_object_url(text); }), HasSubstr("s3://BUCKET/KEY")) << text;
  }
  EXPECT_THAT(error_of([] { parse_object_url("s3://texts/a//b"); }), HasSubstr("empty part"));
}

}  // namespace
}  // namespace skein
