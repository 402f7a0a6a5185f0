// How the lanes of a mixture lie in a checkpoint's manifest: docs/data_order.md.
#include <algorithm>
#include <limits>

#include "skein/base/error.h"
#include "skein/base/text/json_text.h"
#include "skein/data/lanes/mixture.h"

namespace skein {
namespace {

constexpr const char* kContinue =
    "continue with the same corpus, seed and data.lanes, or start a new run with model.init_from";

// The number of lanes. As global_sequences where every batch took one row of each.
constexpr const char* kEvenLanes = "global_sequences";
constexpr const char* kNumLanes = "num_lanes";

bool is_count(const Json& value) {
  if (value.is_number_unsigned()) {
    return value.get<uint64_t>() <= uint64_t{std::numeric_limits<int64_t>::max()};
  }
  return value.is_number_integer() && value.get<int64_t>() >= 0;
}

// The settings on which all lanes depend, and those on which the lanes of a corpus do.
Json options_of(const Mixture& mixture, bool is_even) {
  return {{"seed", mixture.options().seed},
          {is_even ? kEvenLanes : kNumLanes, mixture.options().global_sequences},
          {"segment_bytes", mixture.corpus(0).blocks().segment_bytes()}};
}
Json corpus_of(const LaneContext& context) {
  return {{"corpus_bytes", context.blocks().num_bytes()},
          {"corpus_documents", context.source().num_documents()},
          {"blocks", context.blocks().num_blocks()}};
}

// The values from which the others follow come first.
void check_same(const Json& found, const Json& now, const std::string& whose) {
  for (const char* key : {"corpus_bytes", "corpus_documents", "seed", kEvenLanes, kNumLanes,
                          "segment_bytes", "blocks"}) {
    if (!now.contains(key)) continue;
    const auto value = found.find(key);
    if (value != found.end() && *value == now.at(key)) continue;
    fail(ErrorCode::kInvalid, "{} were saved with {} = {}, this run has {}: {}", whose, key,
         value == found.end() ? "nothing" : json_text(*value), json_text(now.at(key)), kContinue);
  }
}

const Json& lanes_of(const Json& json, int64_t num_lanes, const std::string& what) {
  const auto lanes = json.find("lanes");
  if (lanes == json.end() || !lanes->is_array() ||
      static_cast<int64_t>(lanes->size()) != num_lanes) {
    fail(ErrorCode::kInvalid, "{}: expected \"lanes\" to be a list of {} lane states", what,
         num_lanes);
  }
  return *lanes;
}

// A list of `size` counts.
bool are_counts(const Json& value, size_t size) {
  return value.is_array() && value.size() == size &&
         std::all_of(value.begin(), value.end(), is_count);
}

LaneState position_of(const Json& value) {
  return {value[0].get<int64_t>(), value[1].get<int64_t>(), value[2].get<int64_t>()};
}

// The sources that a checkpoint tells of. One that was saved alone has no name.
std::vector<Json> saved_sources(const Json& json, const std::string& what) {
  const auto sources = json.find("sources");
  if (sources == json.end()) return {json};
  const bool good =
      sources->is_array() && std::all_of(sources->begin(), sources->end(), [](const Json& source) {
        return source.is_object() && source.contains("name") && source["name"].is_string() &&
               source.contains("weight") && source["weight"].is_number();
      });
  if (!good) {
    fail(ErrorCode::kInvalid,
         "{}: expected \"sources\" to be a list of corpora with name and weight", what);
  }
  return {sources->begin(), sources->end()};
}

std::vector<MixtureState> single_from_json(const Json& json, const Mixture& mixture,
                                           const std::string& what) {
  std::vector<MixtureState> states;
  for (const Json& lane : lanes_of(json, mixture.options().global_sequences, what)) {
    if (!are_counts(lane, 3)) {
      fail(ErrorCode::kInvalid,
           "{}: lane {} is {}, expected [block, byte, token], three counts from 0", what,
           states.size(), json_text(lane));
    }
    states.push_back({{position_of(lane)}, {}});
  }
  return states;
}

// Which saved source each part continues; -1: none.
std::vector<int64_t> matches_of(const std::vector<Json>& saved, const Mixture& mixture,
                                const std::string& what) {
  std::vector<int64_t> matches;
  for (const Mixture::Source& part : mixture.parts()) {
    int64_t match = -1;
    const Json now = corpus_of(*part.context);
    for (size_t i = 0; i < saved.size(); ++i) {
      const bool same_text = saved[i].value("corpus_bytes", Json()) == now["corpus_bytes"] &&
                             saved[i].value("corpus_documents", Json()) == now["corpus_documents"];
      const auto name = saved[i].find("name");
      const bool is_it =
          name == saved[i].end() || part.name.empty() ? same_text : *name == part.name;
      if (is_it) match = static_cast<int64_t>(i);
    }
    if (match >= 0) {
      check_same(saved[static_cast<size_t>(match)], now,
                 fmt::format("{}: the lanes of source {}", what, part.name));
    }
    matches.push_back(match);
  }
  return matches;
}

bool same_weights(const std::vector<Json>& saved, const std::vector<int64_t>& matches,
                  const Mixture& mixture) {
  if (saved.size() != matches.size() || saved.size() == 1) return false;
  for (size_t i = 0; i < matches.size(); ++i) {
    if (matches[i] < 0) return false;
    if (saved[static_cast<size_t>(matches[i])]["weight"] != mixture.parts()[i].weight) return false;
  }
  return true;
}

}  // namespace

Json lanes_to_json(const Mixture& mixture, std::span<const MixtureState> states,
                   std::optional<int64_t> rows_taken) {
  Json json = options_of(mixture, !rows_taken), lanes = Json::array();
  if (rows_taken) json["rows"] = *rows_taken;
  const bool is_single = mixture.parts().size() == 1;
  if (is_single) {
    json.update(corpus_of(mixture.corpus(0)));
  } else {
    for (const Mixture::Source& part : mixture.parts()) {
      Json source = corpus_of(*part.context);
      source["name"] = part.name;
      source["weight"] = part.weight;
      json["sources"].push_back(std::move(source));
    }
  }
  for (const MixtureState& state : states) {
    Json positions = Json::array();
    for (size_t i = 0; i < mixture.parts().size(); ++i) {
      const LaneState at = state.lanes.empty() ? LaneState{} : state.lanes[i];
      positions.push_back({at.block, at.byte, at.token});
      if (is_single) continue;
      positions.back().push_back(state.read_tokens.empty() ? 0 : state.read_tokens[i]);
    }
    lanes.push_back(is_single ? positions[0] : std::move(positions));
  }
  json["lanes"] = std::move(lanes);
  return json;
}

std::vector<MixtureState> lanes_from_json(const Json& json, const Mixture& mixture,
                                          const std::string& what) {
  if (!json.is_object()) fail(ErrorCode::kInvalid, "{}: the lanes are no JSON object", what);
  const bool is_single = mixture.parts().size() == 1 && !json.contains("sources");
  Json now = options_of(mixture, !json.contains(kNumLanes));
  if (is_single) now.update(corpus_of(mixture.corpus(0)));
  check_same(json, now, what + ": the lanes");
  if (is_single) return single_from_json(json, mixture, what);
  const std::vector<Json> saved = saved_sources(json, what);
  const std::vector<int64_t> matches = matches_of(saved, mixture, what);
  const bool goes_on = same_weights(saved, matches, mixture);
  const bool was_single = !json.contains("sources");
  std::vector<MixtureState> states;
  for (const Json& lane : lanes_of(json, mixture.options().global_sequences, what)) {
    const Json positions = was_single ? Json::array({lane}) : lane;
    const bool good = positions.is_array() && positions.size() == saved.size() &&
                      std::all_of(positions.begin(), positions.end(), [&](const Json& at) {
                        return are_counts(at, was_single ? 3 : 4);
                      });
    if (!good) {
      fail(ErrorCode::kInvalid,
           "{}: lane {} is {}, expected [block, byte, token, read tokens] of {} sources, counts "
           "from 0",
           what, states.size(), json_text(lane), saved.size());
    }
    MixtureState state;
    for (const int64_t match : matches) {
      const Json* at = match < 0 ? nullptr : &positions[static_cast<size_t>(match)];
      state.lanes.push_back(at == nullptr ? LaneState{} : position_of(*at));
      if (matches.size() > 1) {
        state.read_tokens.push_back(goes_on ? (*at)[3].get<int64_t>() : 0);
      }
    }
    states.push_back(std::move(state));
  }
  return states;
}

int64_t num_lanes_in(const Json& json) {
  for (const char* key : {kNumLanes, kEvenLanes}) {
    const auto found = json.is_object() ? json.find(key) : json.end();
    if (found != json.end() && is_count(*found)) return found->get<int64_t>();
  }
  return 0;
}

int64_t rows_taken_in(const Json& json, int64_t batches, const std::string& what) {
  const auto rows = json.is_object() ? json.find("rows") : json.end();
  if (rows == json.end()) return batches * num_lanes_in(json);
  if (!is_count(*rows)) {
    fail(ErrorCode::kInvalid, "{}: \"rows\" of the lanes is {}, expected a count", what,
         json_text(*rows));
  }
  return rows->get<int64_t>();
}

}  // namespace skein
