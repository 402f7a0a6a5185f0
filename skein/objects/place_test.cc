#include "skein/objects/place.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "skein/base/error.h"
#include "tests/error_of.h"

namespace skein {
namespace {

using test::error_of;
using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;

class Places : public testing::Test {
 protected:
  Places() {
    setenv("SKEIN_TEST_DATA", "/data/me", 1);
    setenv("SKEIN_TEST_EMPTY", "", 1);
    unsetenv("SKEIN_TEST_NONE");
    former_home_ = std::getenv("HOME") == nullptr ? "" : std::getenv("HOME");
    setenv("HOME", "/house/me", 1);
  }
  ~Places() override { setenv("HOME", former_home_.c_str(), 1); }

  static std::string meaning_of(std::string_view written, PlaceUse use = PlaceUse::kDiskOrStore) {
    return Place::parse(written, "--out", use).text();
  }
  static std::string refusal_of(std::string_view written, PlaceUse use = PlaceUse::kDiskOrStore) {
    return error_of([&] {
      try {
        Place::parse(written, "--out", use);
      } catch (const Error& error) {
        EXPECT_EQ(error.code(), ErrorCode::kUsage);
        throw;
      }
    });
  }
  std::string former_home_;
};

TEST_F(Places, VariablesAndTheHomeFolderArePutIn) {
  EXPECT_EQ(meaning_of("${SKEIN_TEST_DATA}/a.arrow"), "/data/me/a.arrow");
  EXPECT_EQ(meaning_of("/x${SKEIN_TEST_DATA}${SKEIN_TEST_DATA}"), "/x/data/me/data/me");
  EXPECT_EQ(meaning_of("~/a"), "/house/me/a");
  EXPECT_EQ(meaning_of("~"), "/house/me");
  for (const char* plain : {"", "runs/~", "./~", "/a/b", "auto", "{config_dir}/x", "a b://c", "a$",
                            "a$/b", "$5", "./gs://x", "run:1/a", "s3://texts/key", "s3://texts"}) {
    EXPECT_EQ(meaning_of(plain), plain);
  }
  setenv("SKEIN_TEST_DATA", "s3://texts", 1);
  const Place place = Place::parse("${SKEIN_TEST_DATA}/a", "--out", PlaceUse::kDiskOrStore);
  EXPECT_TRUE(place.is_object());
  EXPECT_TRUE(place.has_variables());
  EXPECT_EQ(place.written(), "${SKEIN_TEST_DATA}/a");
  EXPECT_EQ(place.path(), "s3://texts/a");
}

TEST_F(Places, AVariableThatIsNotThereIsRefusedByName) {
  EXPECT_EQ(refusal_of("${SKEIN_TEST_NONE}/a"),
            "--out is '${SKEIN_TEST_NONE}/a': the environment variable SKEIN_TEST_NONE is not set: "
            "set it, or write the path in full");
  EXPECT_THAT(refusal_of("${SKEIN_TEST_EMPTY}/a"), HasSubstr("SKEIN_TEST_EMPTY is empty"));
  EXPECT_THAT(refusal_of("$HOME/a"),
              AllOf(StartsWith("--out is '$HOME/a'"), HasSubstr("${HOME}"), HasSubstr("$$HOME")));
  EXPECT_THAT(refusal_of("a/$(pwd)"), HasSubstr("no command is run"));
  EXPECT_THAT(refusal_of("${config_dir}/a"), HasSubstr("{config_dir}, without the dollar"));
  for (const char* malformed : {"${", "${}", "${A", "${A:-b}", "${1}"}) {
    EXPECT_THAT(refusal_of(malformed), HasSubstr("expected ${NAME}")) << malformed;
  }
  EXPECT_THAT(refusal_of("~you/a"), HasSubstr("your own home folder"));
}

TEST_F(Places, OtherUrlsAreRefusedWithWhatHelps) {
  const std::pair<const char*, const char*> urls[] = {
      {"gs://b/x", "AWS_ENDPOINT_URL=https://storage.googleapis.com"},
      {"GS://b/x", "gs:// is not known here"},
      {"gs:/b/x", "gs:// is not known here"},
      {"az://c/x", "azcopy"},
      {"abfss://c@a.dfs.core.windows.net/x", "azcopy"},
      {"hf://datasets/a/b", "hf download NAME"},
      {"https://example.org/a.jsonl", "curl -LO"},
      {"file:///data/x", "write the path alone"},
      {"s3a://b/x", "write s3://"},
      {"s3:/b/x", "with two slashes"},
      {"S3://b/x", "in small letters"},
      {"etcd://node:2379", "only launch.rendezvous"},
      {"etcds://node:2379", "only launch.rendezvous"},
      {"foo+bar://b/x", "a folder of that name is ./foo+bar://b/x"},
      {"s3:///x", "cannot be a bucket"},
      {"s3://b//x", "empty part"},
  };
  for (const auto& [written, help] : urls) {
    EXPECT_THAT(refusal_of(written),
                AllOf(StartsWith(fmt::format("--out is '{}'", written)), HasSubstr(help)));
  }
  setenv("SKEIN_TEST_DATA", "gs://b", 1);
  EXPECT_THAT(refusal_of("${SKEIN_TEST_DATA}/x"), HasSubstr("gs:// is not known here"));
}

TEST_F(Places, EachSettingTakesWhatItCanUse) {
  EXPECT_THAT(refusal_of("s3://b/x", PlaceUse::kDisk),
              AllOf(HasSubstr("an object of a store"), HasSubstr("aws s3 cp")));
  EXPECT_THAT(refusal_of("s3://b/x", PlaceUse::kDiskOrEtcd), HasSubstr("etcd://HOST:PORT"));
  for (const char* etcd : {"etcd://node:2379/a", "etcds://node:2379/a"}) {
    EXPECT_EQ(meaning_of(etcd, PlaceUse::kDiskOrEtcd), etcd);
  }
}

TEST_F(Places, TextIsReadBack) {
  for (const char* meant :
       {"/a/b", "s3://b/k", "/a$b/c", "a$$b", "${A}", "$", "a$/b", "$(x)", "$5"}) {
    EXPECT_EQ(meaning_of(place_text(meant)), meant);
  }
  EXPECT_EQ(place_text("/data/$week"), "/data/$$week");
  EXPECT_EQ(meaning_of(place_text("~x")), "./~x");
}

TEST_F(Places, AreOnTheDiskOrInABucketOnceTheyAreParsed) {
  const Place file("data/a.arrow"), object("s3://b/c/a.arrow"), none;
  EXPECT_EQ(file.object(), nullptr);
  ASSERT_NE(object.object(), nullptr);
  EXPECT_EQ(object.object()->bucket, "b");
  EXPECT_EQ(object.object()->key, "c/a.arrow");
  EXPECT_TRUE(file.is_named() && object.is_named());
  EXPECT_FALSE(none.is_named() || none.is_object());
  EXPECT_FALSE(Place::parse("", "--out", PlaceUse::kDiskOrStore).is_named());
  EXPECT_EQ(Place::parse("s3://b/c/a.arrow", "--out", PlaceUse::kDiskOrStore), object);
  EXPECT_THROW(Place("s3://b//c"), Error);
}

TEST_F(Places, HaveOthersBesideThem) {
  EXPECT_EQ(Place("a.arrow").with_suffix(".sources").text(), "a.arrow.sources");
  const Place beside = Place("s3://b/a.arrow").with_suffix(".sources");
  EXPECT_EQ(beside.text(), "s3://b/a.arrow.sources");
  EXPECT_EQ(beside.object()->key, "a.arrow.sources");
  EXPECT_FALSE(beside.has_variables());
}

}  // namespace
}  // namespace skein
