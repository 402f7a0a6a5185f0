#include "skein/data/packer.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <thread>
#include <utility>

#include "skein/base/error.h"
#include "skein/base/mutex.h"
#include "skein/base/units.h"

namespace skein {
namespace {

// One row of a batch, to be written.
struct Row {
  std::span<int32_t> tokens, labels, positions, attention_starts;  // [T] each
};

Row row_of(Batch& batch, int64_t index) {
  const auto part = [&](std::vector<int32_t>& values) {
    return std::span(values).subspan(index * batch.sequence_length, batch.sequence_length);
  };
  return {part(batch.tokens), part(batch.labels), part(batch.positions),
          part(batch.attention_starts)};
}

// Fills a row behind the end of its lane, from token `begin` on. Without the document mask the
// tokens before go on, which causal attention keeps from what comes after them.
void pad_row(bool document_mask, const Row& row, int64_t begin) {
  const int64_t start = document_mask ? begin : 0;
  for (size_t i = static_cast<size_t>(begin); i < row.tokens.size(); ++i) {
    row.tokens[i] = 0;
    row.labels[i] = kNoLabel;
    row.positions[i] = static_cast<int32_t>(static_cast<int64_t>(i) - start);
    row.attention_starts[i] = static_cast<int32_t>(start);
  }
  if (begin > 0) row.labels[static_cast<size_t>(begin) - 1] = kNoLabel;
}

void pack_row(MixtureLane& lane, bool document_mask, const Row& row,
              std::vector<RowSegment>& segments) {
  const auto length = static_cast<int64_t>(row.tokens.size());
  int64_t attention_start = 0;
  for (int64_t t = 0; t < length;) {
    const std::span<const int32_t> pending = lane.pending();
    if (pending.empty()) return pad_row(document_mask, row, t);
    const int64_t end = std::min<int64_t>(length, t + static_cast<int64_t>(pending.size()));
    if (document_mask) attention_start = t;
    for (int64_t i = t; i < end; ++i) {
      row.tokens[i] = pending[i - t];
      row.positions[i] = static_cast<int32_t>(i - attention_start);
      row.attention_starts[i] = static_cast<int32_t>(attention_start);
      if (i > t) row.labels[i - 1] = row.tokens[i];
    }
    if (t > 0) row.labels[t - 1] = document_mask ? kNoLabel : row.tokens[t];
    segments.push_back({.begin = t,
                        .end = end,
                        .document = lane.document(),
                        .first_token = lane.first_token(),
                        .corpus = lane.corpus()});
    lane.consume(end - t);
    t = end;
  }
  const bool follows = (lane.inside_segment() || !document_mask) && !lane.pending().empty();
  row.labels[length - 1] = follows ? lane.pending().front() : kNoLabel;
}

void skip_tokens(MixtureLane& lane, int64_t count) {
  while (count > 0) {
    const auto step = std::min<int64_t>(count, static_cast<int64_t>(lane.pending().size()));
    lane.consume(step);
    count -= step;
  }
}

void read_ahead(const Mixture& mixture, int64_t lane, const MixtureState& state) {
  for (size_t i = 0; i < mixture.parts().size(); ++i) {
    Lane::read_ahead(mixture.corpus(i), lane,
                     state.lanes.empty() ? LaneState{} : state.lanes.at(i));
  }
}

}  // namespace

Packer::Packer(const Mixture& mixture, int64_t first_lane, int64_t end_lane,
               std::span<const MixtureState> states, int num_threads)
    : mixture_(mixture), first_lane_(first_lane), num_threads_(num_threads) {
  const int64_t num_lanes = mixture.options().global_sequences;
  if (first_lane < 0 || first_lane >= end_lane || end_lane > num_lanes) {
    fail(ErrorCode::kInternal, "lanes {} to {} are not among the {} of the global batch",
         first_lane, end_lane, num_lanes);
  }
  if (!states.empty() && static_cast<int64_t>(states.size()) != num_lanes) {
    fail(ErrorCode::kInternal, "{} lane states were given, expected all {}", states.size(),
         num_lanes);
  }
  lanes_.reserve(end_lane - first_lane);
  segments_.resize(end_lane - first_lane);
  const auto state_of = [&](int64_t lane) {
    return states.empty() ? MixtureState{} : states[lane];
  };
  for (int64_t lane = first_lane; lane < end_lane; ++lane) {
    read_ahead(mixture_, lane, state_of(lane));
  }
  for (int64_t lane = first_lane; lane < end_lane; ++lane) {
    lanes_.emplace_back(mixture_, lane, state_of(lane));
  }
}

void Packer::fill(Batch& batch, std::vector<RowSegment>* segments) {
  const bool document_mask = mixture_.options().document_mask;
  for_each_lane([&](int64_t i) {
    segments_[i].clear();
    pack_row(lanes_[i], document_mask, row_of(batch, i), segments_[i]);
  });
  if (segments != nullptr) segments->clear();
  for (int64_t i = 0; segments != nullptr && i < num_lanes(); ++i) {
    for (RowSegment& segment : segments_[i]) segment.row = i;
    segments->insert(segments->end(), segments_[i].begin(), segments_[i].end());
  }
  batch.num_label_tokens =
      std::count_if(batch.labels.begin(), batch.labels.end(), [](int32_t l) { return l >= 0; });
  batch.progress.assign(mixture_.parts().size(), 0);
  for (const MixtureLane& lane : lanes_) {
    for (size_t i = 0; i < batch.progress.size(); ++i) batch.progress[i] += lane.progress(i);
  }
}

void Packer::skip(int64_t num_rows) {
  const int64_t length = mixture_.options().sequence_length;
  for_each_lane([&](int64_t i) {
    for (int64_t row = 0; row < num_rows; ++row) skip_tokens(lanes_[i], length);
  });
}

Packer::Holding Packer::count_rows(int64_t most_rows, int num_threads) {
  const int64_t length = mixture_.options().sequence_length;
  const int64_t most = most_rows == 0 ? INT64_MAX : most_rows * length;
  std::vector<int64_t> tokens(lanes_.size());
  std::vector<char> has_more(lanes_.size());
  const auto count_lane = [&](int64_t i) {
    const bool is_plain = most_rows > 0 && mixture_.corpus(0).holds_plainly(first_lane_ + i, most);
    if (is_plain) tokens[i] = most;
    while (tokens[i] < most) {
      const auto pending = static_cast<int64_t>(lanes_[i].pending().size());
      if (pending == 0) break;
      const int64_t step = std::min(pending, most - tokens[i]);
      lanes_[i].consume(step);
      tokens[i] += step;
    }
    has_more[i] = is_plain || !lanes_[i].pending().empty() ? 1 : 0;
  };
  const int usual = std::exchange(num_threads_, num_threads);
  for_each_lane(count_lane);
  num_threads_ = usual;
  Holding holding;
  holding.is_all = std::count(has_more.begin(), has_more.end(), 1) == 0;
  for (const int64_t of_lane : tokens) {
    holding.most_rows = std::max(holding.most_rows, ceil_div(of_lane, length));
    holding.tokens += of_lane;
  }
  return holding;
}

void Packer::restart() {
  for (const MixtureLane& lane : lanes_) read_ahead(mixture_, lane.lane(), {});
  for (MixtureLane& lane : lanes_) lane = MixtureLane(mixture_, lane.lane());
}

void Packer::states(std::vector<MixtureState>& out) const {
  out.clear();
  for (const MixtureLane& lane : lanes_) out.push_back(lane.state());
}

void Packer::for_each_lane(const std::function<void(int64_t)>& body) {
  const auto num_threads = static_cast<int>(std::min<int64_t>(num_threads_, num_lanes()));
  if (num_threads <= 1) {
    for (int64_t i = 0; i < num_lanes(); ++i) body(i);
    return;
  }
  std::atomic<int64_t> next = 0;
  Mutex mutex;
  std::exception_ptr error;
  const auto work = [&] {
    try {
      for (int64_t i = next++; i < num_lanes(); i = next++) body(i);
    } catch (...) {
      const Lock lock(mutex);
      error = std::current_exception();
      next = num_lanes();
    }
  };
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < num_threads; ++i) threads.emplace_back(work);
  }
  if (error) std::rethrow_exception(error);
}

Batch batch_of_step(const Mixture& mixture, int64_t step, int64_t states_step,
                    std::span<const MixtureState> states, int num_threads,
                    std::vector<RowSegment>* segments) {
  if (step <= states_step) {
    fail(ErrorCode::kUsage, "step {} cannot be sampled, expected one from {} on", step,
         states_step + 1);
  }
  const int64_t num_lanes = mixture.options().global_sequences;
  Packer packer(mixture, 0, num_lanes, states, num_threads);
  packer.skip(step - states_step - 1);
  Batch batch(0, num_lanes, mixture.options().sequence_length);
  packer.fill(batch, segments);
  batch.step = step;
  return batch;
}

}  // namespace skein
