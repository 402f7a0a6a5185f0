#include "skein/supervise/digest.h"

#include <utility>

#include "skein/base/error.h"
#include "skein/supervise/record_fields.h"

namespace skein {
namespace {

// A record of a list, without the fields that have their default: there may be thousands.
OrderedJson listed(const HostRecord& record) {
  const OrderedJson all = host_to_json(record), defaults = host_to_json(HostRecord());
  OrderedJson json = OrderedJson::object();
  for (const auto& [key, value] : all.items()) {
    if (key == "host" || value != defaults.at(key)) json[key] = value;
  }
  return json;
}

HostRecord of_list(const Json& json, const std::string& what) {
  Json all = host_to_json(HostRecord());
  if (json.is_object()) all.update(json);
  return host_from_json(all, what);
}

DigestKey key_of(const RecordFields& fields) {
  return {fields.number("term"), fields.text("writer")};
}

}  // namespace

OrderedJson digest_to_json(const HostDigest& digest) {
  return {{"writer", digest.key.writer}, {"term", digest.key.term},
          {"beat", digest.beat},         {"host_beat", digest.host_beat},
          {"list", digest.list},         {"generation", digest.generation}};
}

HostDigest digest_from_json(const Json& json, const std::string& what) {
  const RecordFields fields(json, what);
  return {.key = key_of(fields),
          .beat = fields.number("beat"),
          .host_beat = fields.number("host_beat"),
          .list = fields.number("list"),
          .generation = fields.number("generation")};
}

OrderedJson digest_list_to_json(const DigestList& list) {
  OrderedJson hosts = OrderedJson::array(), quiet = OrderedJson::object();
  for (const HostRecord& host : list.hosts) hosts.push_back(listed(host));
  for (const auto& [host, time] : *list.quiet) quiet[host] = time;
  return {{"writer", list.key.writer},
          {"term", list.key.term},
          {"list", list.number},
          {"hosts", std::move(hosts)},
          {"quiet_ms", std::move(quiet)}};
}

DigestList digest_list_from_json(const Json& json, const std::string& what) {
  const RecordFields fields(json, what);
  const Json &hosts = fields.get("hosts"), &quiet = fields.get("quiet_ms");
  if (!hosts.is_array()) fields.wrong("hosts", "a list");
  DigestList list{.key = key_of(fields), .number = fields.number("list")};
  std::vector<HostRecord> records;
  for (const Json& host : hosts) {
    // One that this version cannot read, such as a newer one's, is missing for who follows, as its
    // record is for who reads that.
    if (auto record = try_run([&] { return of_list(host, what); }); record.ok()) {
      records.push_back(std::move(record).value());
    }
  }
  StoreView sorted{.hosts = std::move(records)};
  sorted.sort();
  list.hosts = sorted.hosts;
  const RecordFields times(quiet, what);
  std::map<std::string, Millis> quiet_for;
  for (const auto& item : quiet.items()) quiet_for[item.key()] = times.number(item.key().c_str());
  list.quiet = std::make_shared<const std::map<std::string, Millis>>(std::move(quiet_for));
  return list;
}

}  // namespace skein
