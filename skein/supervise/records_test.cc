#include "skein/supervise/records.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>

#include "skein/base/error.h"

namespace skein {
namespace {

using testing::HasSubstr;

TEST(Records, ReadBack) {
  HostRecord record;
  record.host = "node-1";
  record.beat = 12;
  record.joined = record.ended = 3;
  record.ending = Ending::kOutOfMemory;
  record.message = "it was \"large\"";
  record.succeeds = "node-0";
  record.step = 77;
  record.leaving = record.gone = true;
  record.sick = "storage: full";
  record.work_us = {120, 130};
  const Json json = Json::parse(host_to_json(record).dump());
  EXPECT_EQ(host_to_json(host_from_json(json, "it")), host_to_json(record));

  GenerationRecord with_verdict;
  with_verdict.number = 4;
  with_verdict.members = {{"a", 2}, {"b", 2}};
  with_verdict.best_step = 8;
  with_verdict.attempts = 2;
  with_verdict.vain_starts = 1;
  with_verdict.failure = "crashed";
  with_verdict.same_failures = 1;
  with_verdict.vain_regroups = 3;
  with_verdict.verdict = Verdict{75, "stopped"};
  const Json generation_json = Json::parse(generation_to_json(with_verdict).dump());
  EXPECT_EQ(generation_to_json(generation_from_json(generation_json, "it")),
            generation_to_json(with_verdict));
}

TEST(Records, AHostThatSaysNothingOfItsHealthNeedsNoCheck) {
  HostRecord record;
  record.host = "a";
  Json json = Json::parse(host_to_json(record).dump());
  json.erase("checked");
  json.erase("sick");
  EXPECT_EQ(host_from_json(json, "it").checked, kNeedsNoCheck);
  EXPECT_EQ(host_from_json(json, "it").sick, "");
}

TEST(Records, EveryFieldThatIsWrongIsNamed) {
  HostRecord record;
  record.host = "a";
  const Json good = Json::parse(host_to_json(record).dump());
  for (const auto& [key, value] : good.items()) {
    Json bad = good;
    bad[key] = Json::object();
    try {
      host_from_json(bad, "host-a.json");
      ADD_FAILURE() << key;
    } catch (const Error& error) {
      EXPECT_THAT(error.what(), testing::AllOf(HasSubstr("host-a.json: " + key), HasSubstr("{}")));
    }
    bad.erase(key);
    // Older versions do not write these.
    const std::set<std::string> newer = {"checked", "sick", "work_us", "replicas"};
    if (newer.contains(key)) continue;
    EXPECT_THROW(host_from_json(bad, "host-a.json"), Error) << key;
  }
}

}  // namespace
}  // namespace skein
