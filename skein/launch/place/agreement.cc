#include "skein/launch/place/agreement.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <span>
#include <vector>

#include "skein/base/error.h"
#include "skein/base/machine/program_path.h"
#include "skein/base/numbers/hash.h"
#include "skein/base/version.h"

namespace skein {
namespace {

constexpr size_t kMaxShownLine = 200;

// Gathers the `share` of every rank, in order of ranks; bytes are sent as i32.
std::string all_gather(Communicator& world, std::string share, std::string_view label) {
  share.resize((share.size() + 3) / 4 * 4);
  const auto words = static_cast<int64_t>(share.size() / 4);
  std::vector<int32_t> mine(static_cast<size_t>(words));
  std::vector<int32_t> all(mine.size() * static_cast<size_t>(world.size()));
  std::memcpy(mine.data(), share.data(), share.size());
  Collective collective;
  collective.kind = CollectiveKind::kAllGather;
  collective.dtype = DType::kI32;
  collective.parts = {{mine.data(), all.data(), words * world.size(), words}};
  collective.label = label;
  world.run(collective);
  return {reinterpret_cast<const char*>(all.data()), all.size() * sizeof(int32_t)};
}

// Encodes each fact as "<name length> <value length> <name><value>", so that names and values may
// hold any bytes.
std::string to_bytes(const Facts& facts) {
  std::string bytes;
  for (const auto& [name, value] : facts) {
    bytes += fmt::format("{} {} ", name.size(), value.size()) + name + value;
  }
  return bytes;
}

Facts from_bytes(std::string_view bytes) {
  Facts facts;
  const auto number = [&] {
    size_t value = 0;
    while (!bytes.empty() && bytes.front() >= '0' && bytes.front() <= '9') {
      value = std::min<size_t>(value, 1 << 30) * 10 + static_cast<size_t>(bytes.front() - '0');
      bytes.remove_prefix(1);
    }
    bytes.remove_prefix(std::min<size_t>(1, bytes.size()));
    return value;
  };
  const auto text = [&](size_t size) {
    const std::string_view found = bytes.substr(0, size);
    bytes.remove_prefix(found.size());
    return std::string(found);
  };
  while (!bytes.empty() && bytes.front() != '\0') {  // a NUL begins the padding
    const size_t name_size = number(), value_size = number();
    std::string name = text(name_size);
    facts[std::move(name)] = text(value_size);
  }
  return facts;
}

std::string_view next_line(std::string_view& text) {
  const size_t end = std::min(text.find('\n'), text.size());
  const std::string_view line = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  return line;
}

std::string shown(std::string_view line) {
  if (line.size() <= kMaxShownLine) return fmt::format("\"{}\"", line);
  return fmt::format("\"{}…\"", line.substr(0, kMaxShownLine));
}

// Text such as 'line 12 of the configuration is "a", expected "b"'. The texts must differ.
std::string difference(const std::string& name, std::string_view found, std::string_view expected) {
  const bool one_line = found.find('\n') == found.npos && expected.find('\n') == expected.npos;
  if (one_line) return fmt::format("{} is {}, expected {}", name, shown(found), shown(expected));
  for (int line = 1; !found.empty() || !expected.empty(); ++line) {
    const std::string a = found.empty() ? "missing" : shown(next_line(found));
    const std::string b = expected.empty() ? "the end" : shown(next_line(expected));
    if (a != b) return fmt::format("line {} of the {} is {}, expected {}", line, name, a, b);
  }
  return fmt::format("the {} differs in how a line ends, or past what is shown of it", name);
}

std::string difference(const Facts& found, const Facts& expected) {
  for (const auto& [name, value] : expected) {
    const auto own = found.find(name);
    if (own == found.end()) return fmt::format("it does not say its {}", name);
    if (own->second != value) return difference(name, own->second, value);
  }
  for (const auto& [name, value] : found) {
    if (!expected.contains(name)) return fmt::format("only it says its {}", name);
  }
  return "its facts are not readable";
}

// The lowest rank whose hash is the most common one.
int most_common(std::span<const std::string> hashes) {
  std::map<std::string_view, int> counts;
  for (const std::string& hash : hashes) ++counts[hash];
  const auto more = [&](const std::string& a, const std::string& b) {
    return counts[a] < counts[b];
  };
  return static_cast<int>(std::max_element(hashes.begin(), hashes.end(), more) - hashes.begin());
}

std::string names_of(std::span<const int> ranks) {
  constexpr size_t kMaxNamed = 8;
  std::string names = ranks.size() == 1 ? "rank" : "ranks";
  for (size_t i = 0; i < std::min(ranks.size(), kMaxNamed); ++i) {
    names += fmt::format("{} {}", i == 0 ? "" : ",", ranks[i]);
  }
  if (ranks.size() > kMaxNamed) names += fmt::format(" and {} more", ranks.size() - kMaxNamed);
  return names;
}

}  // namespace

void check_agreement(Communicator& world, const Facts& facts) {
  const auto size = static_cast<size_t>(world.size());
  const std::string mine = to_bytes(facts);
  const std::string digest = xxh3_128_hex(std::as_bytes(std::span(mine)));  // 32 digits
  const std::string digests = all_gather(world, digest, "agreement");
  std::vector<std::string> hashes;
  for (size_t rank = 0; rank < size; ++rank) hashes.push_back(digests.substr(rank * 32, 32));
  const int model = most_common(hashes);
  std::vector<int> others;
  for (size_t rank = 0; rank < size; ++rank) {
    if (hashes[rank] != hashes[static_cast<size_t>(model)])
      others.push_back(static_cast<int>(rank));
  }
  if (others.empty()) return;

  // All ranks see the same digests, so all of them continue here.
  std::array<int32_t, 1> length = {static_cast<int32_t>(mine.size())};
  std::string length_bytes(sizeof(length), '\0');
  std::memcpy(length_bytes.data(), length.data(), sizeof(length));
  const std::string lengths = all_gather(world, length_bytes, "agreement");
  int32_t longest = 0;
  for (size_t rank = 0; rank < size; ++rank) {
    std::memcpy(length.data(), lengths.data() + rank * sizeof(length), sizeof(length));
    longest = std::max(longest, length[0]);
  }
  std::string padded = mine;
  padded.resize((static_cast<size_t>(longest) + 3) / 4 * 4);
  const std::string texts = all_gather(world, padded, "agreement");
  const auto facts_of = [&](int rank) {
    return from_bytes(
        std::string_view(texts).substr(static_cast<size_t>(rank) * padded.size(), padded.size()));
  };
  fail(ErrorCode::kUsage,
       "{} of {} {} started with something else than rank {}{}. Rank {}: {}. Start every rank with "
       "the same program and configuration",
       names_of(others), world.size(), others.size() == 1 ? "was" : "were", model,
       others.size() + 1 < size ? " and the others" : "", others.front(),
       difference(facts_of(others.front()), facts_of(model)));
}

std::string program_id() {
  static const std::string id = [] {
    const MappedFile program = map_program();
    return fmt::format("{} {}", kVersion, xxh3_128_hex(program.bytes()));
  }();
  return id;
}

}  // namespace skein
