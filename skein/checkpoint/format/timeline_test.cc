#include "skein/checkpoint/format/timeline.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "skein/checkpoint/format/manifest.h"
#include "tests/checkpoint/checkpoint_test_state.h"
#include "tests/error_of.h"

namespace skein {
namespace {

using test::error_of;
using testing::HasSubstr;

Timeline sample() {
  return {"20261122t081032-5f3a91c2", 2, Timeline::Parent{"earlier", 10, "step-00000010"}};
}

TEST(Timeline, ReadsBackWhatItWrote) {
  for (const Timeline& timeline : {sample(), Timeline{}, Timeline{"a", 1, {}},
                                   Timeline{"b", 3, Timeline::Parent{"", 4, "/x"}}}) {
    EXPECT_EQ(parse_timeline(timeline_json(timeline), "t"), timeline);
    Manifest manifest;
    manifest.state.timeline = timeline;
    EXPECT_EQ(parse_manifest(manifest_text(manifest), "m").state.timeline, timeline);
  }
}

TEST(Timeline, AManifestWithoutOneIsOfNoTimeline) {
  const std::string text = manifest_text(Manifest{});
  EXPECT_EQ(text.find("timeline"), std::string::npos) << text;
  EXPECT_EQ(parse_manifest(text, "m").state.timeline, Timeline{});
}

TEST(Timeline, RefusesWhatIsNotOne) {
  struct Case {
    const char* pointer;
    Json value;
    const char* expected;
  };
  const std::vector<Case> cases = {
      {"", 3, "expected an object"},
      {"/extra", 3, "unknown keys"},
      {"/run_id", 3, "run_id is number, expected a text"},
      {"/run_id", "a/b", "expected up to 100 of a-z"},
      {"/run_id", std::string(101, 'a'), "expected up to 100 of a-z"},
      {"/number", -1, "number is -1, expected an integer of 0 or more"},
      {"/number", 1.5, "number is 1.5"},
      {"/number", UINT64_MAX, "expected an integer of 0 or more"},
      {"/parent", "x", "parent: found string, expected an object"},
      {"/parent/step", "x", "parent: step is string"},
      {"/parent/path", 1, "parent: path is number"},
      {"/parent/extra", 1, "parent: 4 keys, expected 3"},
  };
  for (const Case& item : cases) {
    Json changed = timeline_json(sample());
    changed[Json::json_pointer(item.pointer)] = item.value;
    EXPECT_THAT(error_of([&] { parse_timeline(changed, "t"); }), HasSubstr(item.expected))
        << item.pointer;
  }
  for (const char* key : {"run_id", "number", "parent"}) {
    Json changed = timeline_json(sample());
    changed.erase(key);
    EXPECT_THAT(error_of([&] { parse_timeline(changed, "t"); }),
                HasSubstr(fmt::format("\"{}\" is missing", key)));
  }
}

TEST(Timeline, IdsDiffer) {
  const std::string a = new_run_id(), b = new_run_id();
  EXPECT_NE(a, b);
  EXPECT_EQ(parse_timeline(timeline_json({a, 1, {}}), "t").run_id, a);
}

TEST(Timeline, OldCheckpointsAreOfTheFirst) {
  EXPECT_TRUE(same_timeline({"", 0, {}}, {"a", 0, {}}));
  EXPECT_TRUE(same_timeline({"a", 0, {}}, {"", 0, {}}));
  EXPECT_TRUE(same_timeline({"a", 1, {}}, {"a", 1, {}}));
  EXPECT_FALSE(same_timeline({"a", 0, {}}, {"b", 0, {}}));
  EXPECT_FALSE(same_timeline({"a", 1, {}}, {"b", 1, {}}));
  EXPECT_FALSE(same_timeline({"a", 1, {}}, {"a", 2, {}}));
}

}  // namespace
}  // namespace skein
