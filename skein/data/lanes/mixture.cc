#include "skein/data/lanes/mixture.h"

#include <algorithm>

#include "skein/base/error.h"
#include "skein/base/numbers/philox.h"

namespace skein {

Mixture::Mixture(std::vector<Source> parts) : parts_(std::move(parts)) {
  if (parts_.empty()) fail(ErrorCode::kInternal, "a mixture of no corpora");
  for (const Source& part : parts_) {
    if (part.weight > 0) continue;
    fail(ErrorCode::kInternal, "{}: a weight of {}, expected above 0", part.name, part.weight);
  }
}

std::string Mixture::name() const {
  std::string names;
  for (const Source& part : parts_) {
    names += (names.empty() ? "" : ", ") + part.context->source().name();
  }
  return names;
}

int64_t Mixture::first_tokens(int64_t lane, size_t part) const {
  if (parts_.size() == 1) return 0;
  const Philox philox(options().seed, RandomPurpose::kMixture, static_cast<uint32_t>(lane), 0);
  return philox.word(part) % kSpreadTokens;
}

std::vector<double> Mixture::epochs(std::span<const double> progress) const {
  std::vector<double> epochs;
  for (size_t i = 0; i < parts_.size(); ++i) epochs.push_back(corpus(i).epochs(progress[i]));
  return epochs;
}

double Mixture::epoch(std::span<const double> epochs) const {
  if (parts_.size() == 1) return epochs[0];
  double read = 0, all = 0;
  for (size_t i = 0; i < parts_.size(); ++i) {
    const auto bytes = static_cast<double>(corpus(i).blocks().num_bytes());
    read += epochs[i] * bytes;
    all += bytes;
  }
  return read / all;
}

MixtureLane::MixtureLane(const Mixture& mixture, int64_t lane, const MixtureState& state)
    : read_tokens_(state.read_tokens) {
  const size_t count = mixture.parts().size();
  for (size_t i = 0; i < count; ++i) {
    shares_.push_back({mixture.parts()[i].weight, mixture.first_tokens(lane, i)});
    lanes_.emplace_back(mixture.corpus(i), lane,
                        state.lanes.empty() ? LaneState{} : state.lanes.at(i));
  }
  if (read_tokens_.empty() && count > 1) read_tokens_.resize(count);
  current_ = choose();
}

size_t MixtureLane::choose() const {
  size_t best = 0;
  double least = 0;
  for (size_t i = 0; i < lanes_.size(); ++i) {
    if (lanes_.size() == 1 || lanes_[i].inside_segment()) return i;
    const int64_t tokens = read_tokens_[i] + shares_[i].first_tokens;
    const double turn = static_cast<double>(tokens) / shares_[i].weight;
    if (i > 0 && turn >= least) continue;
    least = turn;
    best = i;
  }
  return best;
}

void MixtureLane::consume(int64_t count) {
  lanes_[current_].consume(count);
  if (lanes_.size() == 1) return;
  read_tokens_[current_] += count;
  if (!lanes_[current_].inside_segment()) current_ = choose();
}

MixtureState MixtureLane::state() const {
  MixtureState state;
  for (const Lane& lane : lanes_) state.lanes.push_back(lane.state());
  state.read_tokens = read_tokens_;
  return state;
}

}  // namespace skein
