#include "skein/supervise/records.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "skein/base/error.h"
#include "skein/base/text/json_text.h"
#include "skein/supervise/record_fields.h"

namespace skein {
namespace {

using Fields = RecordFields;

constexpr std::string_view kAtStep = " at step ";

}  // namespace

std::string failure_text(const HostRecord& cause) {
  return fmt::format("{}{}{}: {}", ending_name(cause.ending), kAtStep, cause.step, cause.message);
}

std::string cause_in(const std::string& failure) {
  const size_t end = failure.find(kAtStep);
  return end == std::string::npos ? "" : failure.substr(0, end);
}

const GenerationRecord::Member* GenerationRecord::member(const std::string& host) const {
  const auto found = std::find_if(members.begin(), members.end(),
                                  [&](const Member& member) { return member.host == host; });
  return found == members.end() ? nullptr : &*found;
}

int GenerationRecord::first_rank(const std::string& host) const {
  int rank = 0;
  for (const Member& member : members) {
    if (member.host == host) break;
    rank += member.workers;
  }
  return rank;
}

int GenerationRecord::num_ranks() const {
  int ranks = 0;
  for (const Member& member : members) ranks += member.workers;
  return ranks;
}

OrderedJson host_to_json(const HostRecord& record) {
  return {{"host", record.host},       {"succeeds", record.succeeds},
          {"beat", record.beat},       {"workers", record.workers},
          {"joined", record.joined},   {"ended", record.ended},
          {"message", record.message}, {"ending", ending_name(record.ending)},
          {"step", record.step},       {"leaving", record.leaving},
          {"gone", record.gone},       {"replicas", record.replicas},
          {"checked", record.checked}, {"sick", record.sick},
          {"work_us", record.work_us}};
}

HostRecord host_from_json(const Json& json, const std::string& what) {
  const Fields fields(json, what);
  HostRecord record;
  record.host = fields.text("host");
  record.succeeds = fields.text("succeeds");
  record.beat = fields.number("beat");
  record.workers = fields.count("workers");
  record.joined = fields.number("joined");
  record.ended = fields.number("ended");
  record.ending = ending_named(fields.text("ending"));
  record.message = fields.text("message");
  record.step = fields.number("step");
  record.leaving = fields.flag("leaving");
  record.gone = fields.flag("gone");
  if (fields.has("replicas")) record.replicas = fields.text("replicas");
  // Records of versions that did not check their hosts have none of these.
  record.checked = fields.has("checked") ? fields.number("checked") : kNeedsNoCheck;
  if (fields.has("sick")) record.sick = fields.text("sick");
  if (fields.has("work_us")) record.work_us = fields.numbers("work_us");
  return record;
}

OrderedJson generation_to_json(const GenerationRecord& record) {
  OrderedJson members = OrderedJson::array();
  for (const auto& member : record.members) {
    members.push_back({{"host", member.host}, {"workers", member.workers}});
  }
  OrderedJson json = {{"number", record.number},
                      {"members", std::move(members)},
                      {"best_step", record.best_step},
                      {"attempts", record.attempts},
                      {"vain_starts", record.vain_starts},
                      {"failure", record.failure},
                      {"same_failures", record.same_failures},
                      {"vain_regroups", record.vain_regroups}};
  if (record.verdict) {
    json["verdict"] = {{"exit_code", record.verdict->exit_code},
                       {"message", record.verdict->message}};
  }
  return json;
}

GenerationRecord generation_from_json(const Json& json, const std::string& what) {
  const Fields fields(json, what);
  GenerationRecord record;
  record.number = fields.number("number");
  const Json& members = fields.get("members");
  if (!members.is_array()) fields.wrong("members", "a list");
  for (const Json& member : members) {
    const Fields of_member(member, what);
    record.members.push_back({of_member.text("host"), of_member.count("workers")});
  }
  record.best_step = fields.number("best_step");
  record.attempts = fields.count("attempts");
  record.vain_starts = fields.count("vain_starts");
  record.failure = fields.text("failure");
  record.same_failures = fields.count("same_failures");
  if (fields.has("vain_regroups")) record.vain_regroups = fields.count("vain_regroups");
  if (fields.has("verdict")) {
    const Fields verdict(fields.get("verdict"), what);
    record.verdict =
        Verdict{static_cast<int>(verdict.number("exit_code", 255)), verdict.text("message")};
  }
  return record;
}

}  // namespace skein
