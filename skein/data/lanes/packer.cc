#include "skein/data/lanes/packer.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <numeric>
#include <thread>
#include <utility>

#include "skein/base/error.h"
#include "skein/base/text/units.h"
#include "skein/base/threads/mutex.h"

namespace skein {
namespace {

// One row of a batch, to be written.
struct RowSpans {
  std::span<int32_t> tokens, labels, positions, attention_starts;  // [T] each
};

RowSpans row_of(Batch& batch, int64_t index) {
  const auto part = [&](std::vector<int32_t>& values) {
    return std::span(values).subspan(index * batch.sequence_length, batch.sequence_length);
  };
  return {part(batch.tokens), part(batch.labels), part(batch.positions),
          part(batch.attention_starts)};
}

// Fills a row behind the end of its lane, from token `begin` on. Without the document mask the
// tokens before go on, which causal attention keeps from what comes after them.
void pad_row(bool document_mask, const RowSpans& row, int64_t begin) {
  const int64_t start = document_mask ? begin : 0;
  for (size_t i = static_cast<size_t>(begin); i < row.tokens.size(); ++i) {
    row.tokens[i] = 0;
    row.labels[i] = kNoLabel;
    row.positions[i] = static_cast<int32_t>(static_cast<int64_t>(i) - start);
    row.attention_starts[i] = static_cast<int32_t>(start);
  }
  if (begin > 0) row.labels[static_cast<size_t>(begin) - 1] = kNoLabel;
}

// The label that token `i` of those that are read next is, for the token before it.
int32_t label_of(std::span<const int32_t> pending, std::span<const uint8_t> counts, size_t i) {
  return counts.empty() || counts[i] != 0 ? pending[i] : kNoLabel;
}

void pack_row(MixtureLane& lane, bool document_mask, const RowSpans& row,
              std::vector<RowSegment>& segments) {
  const auto length = static_cast<int64_t>(row.tokens.size());
  int64_t attention_start = 0;
  for (int64_t t = 0; t < length;) {
    const std::span<const int32_t> pending = lane.pending();
    if (pending.empty()) return pad_row(document_mask, row, t);
    const std::span<const uint8_t> counts = lane.counts();
    const int64_t end = std::min<int64_t>(length, t + static_cast<int64_t>(pending.size()));
    if (document_mask) attention_start = t;
    for (int64_t i = t; i < end; ++i) {
      row.tokens[i] = pending[i - t];
      row.positions[i] = static_cast<int32_t>(i - attention_start);
      row.attention_starts[i] = static_cast<int32_t>(attention_start);
      if (i > t) row.labels[i - 1] = label_of(pending, counts, static_cast<size_t>(i - t));
    }
    if (t > 0) row.labels[t - 1] = document_mask ? kNoLabel : label_of(pending, counts, 0);
    segments.push_back({.begin = t,
                        .end = end,
                        .document = lane.document(),
                        .first_token = lane.first_token(),
                        .corpus = lane.corpus()});
    lane.consume(end - t);
    t = end;
  }
  const bool follows = (lane.inside_segment() || !document_mask) && !lane.pending().empty();
  row.labels[length - 1] = follows ? label_of(lane.pending(), lane.counts(), 0) : kNoLabel;
}

// Ends at the end of a lane that is read once.
void skip_tokens(MixtureLane& lane, int64_t count) {
  while (count > 0 && !lane.pending().empty()) {
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

Packer::Packer(const Mixture& mixture, const Rows& rows, std::span<const MixtureState> states,
               int num_threads)
    : mixture_(mixture),
      rows_(rows),
      begin_(rows),
      num_threads_(num_threads),
      states_(states.begin(), states.end()),
      index_(static_cast<size_t>(num_lanes()), -1) {
  const RowShare& share = rows.share;
  if (share.first < 0 || share.first >= share.end || share.end > share.of ||
      rows.sequences * share.first % share.of != 0 || rows.sequences * share.end % share.of != 0) {
    fail(ErrorCode::kInternal, "{} to {} of {} parts is no share of {} rows", share.first,
         share.end, share.of, rows.sequences);
  }
  if (!states.empty() && static_cast<int64_t>(states.size()) != num_lanes()) {
    fail(ErrorCode::kInternal, "{} lane states were given, expected all {}", states.size(),
         num_lanes());
  }
  make_readers(lanes_to_read());
  segments_.resize(static_cast<size_t>(num_rows()));
}

Packer::Packer(const Mixture& mixture, int64_t first_lane, int64_t end_lane,
               std::span<const MixtureState> states, int num_threads)
    : Packer(mixture,
             Rows{{first_lane, end_lane, mixture.options().global_sequences},
                  mixture.options().global_sequences},
             states, num_threads) {}

int64_t Packer::rows_of_lane(int64_t lane, int64_t taken) const {
  return (taken + num_lanes() - 1 - lane) / num_lanes();
}

// As long as the size of batches stays the same.
std::vector<int64_t> Packer::lanes_to_read() const {
  const int64_t lanes = num_lanes(), apart = std::gcd(lanes, rows_.sequences);
  const int64_t first = rows_.share.first_row(rows_.sequences);
  std::vector<int64_t> all;
  for (int64_t row = first; row < first + std::min(num_rows(), apart); ++row) {
    for (int64_t k = 0; k < lanes; k += apart) all.push_back((rows_.taken + row + k) % lanes);
  }
  std::sort(all.begin(), all.end());
  return all;
}

void Packer::make_readers(std::span<const int64_t> lanes) {
  const auto state_of = [&](int64_t lane) {
    return states_.empty() ? MixtureState{} : states_[static_cast<size_t>(lane)];
  };
  for (const int64_t lane : lanes) read_ahead(mixture_, lane, state_of(lane));
  const RowShare& share = begin_.share;
  for (const int64_t lane : lanes) {
    const int64_t row = (lane - begin_.taken % num_lanes() + num_lanes()) % num_lanes();
    const int64_t of_batch = row % begin_.sequences;
    index_[static_cast<size_t>(lane)] = static_cast<int32_t>(readers_.size());
    readers_.push_back({MixtureLane(mixture_, lane, state_of(lane)),
                        rows_of_lane(lane, begin_.taken),
                        of_batch >= share.first_row(begin_.sequences) &&
                            of_batch < share.end_row(begin_.sequences)});
  }
}

bool Packer::answers_for(const LaneReader& reader) const {
  return reader.row == rows_of_lane(reader.lane.lane(), rows_.taken) &&
         (reader.has_read || reader.is_first_of_lane);
}

void Packer::pass_to(LaneReader& reader, int64_t row) const {
  for (; reader.row < row; ++reader.row) {
    skip_tokens(reader.lane, mixture_.options().sequence_length);
  }
}

// Progress within a segment is told in tokens, so those of lanes whose turn comes later must be
// known.
void Packer::begin_segments() {
  if (std::exchange(has_begun_, true)) return;
  for_each(std::ssize(readers_), [&](int64_t i) {
    MixtureLane& lane = readers_[static_cast<size_t>(i)].lane;
    if (lane.inside_segment()) lane.pending();
  });
}

void Packer::fill(Batch& batch, std::vector<RowSegment>* segments) {
  const bool document_mask = mixture_.options().document_mask;
  const int64_t first = rows_.taken + rows_.share.first_row(rows_.sequences), count = num_rows();
  const int64_t lanes = std::min(count, num_lanes());
  std::vector<int64_t> missing;
  for (int64_t i = 0; i < lanes; ++i) {
    const int64_t lane = (first + i) % num_lanes();
    if (index_[static_cast<size_t>(lane)] < 0) missing.push_back(lane);
  }
  make_readers(missing);
  begin_segments();
  for_each(lanes, [&](int64_t i) {
    LaneReader& reader = reader_of((first + i) % num_lanes());
    for (int64_t row = i; row < count; row += num_lanes()) {
      pass_to(reader, (first + row) / num_lanes());
      segments_[static_cast<size_t>(row)].clear();
      const RowSpans spans = row_of(batch, row);
      std::vector<RowSegment>& of_row = segments_[static_cast<size_t>(row)];
      pack_row(reader.lane, document_mask, spans, of_row);
      if (const auto& mask = mixture_.corpus(0).mask()) {
        mask->apply(first + row, of_row, spans.tokens, spans.labels);
      }
      ++reader.row;
    }
    reader.has_read = true;
  });
  rows_.taken += rows_.sequences;
  batch.first_lane = first % num_lanes();
  batch.num_lanes = num_lanes();
  if (segments != nullptr) segments->clear();
  for (int64_t i = 0; segments != nullptr && i < count; ++i) {
    for (RowSegment& segment : segments_[i]) segment.row = i;
    segments->insert(segments->end(), segments_[i].begin(), segments_[i].end());
  }
  batch.num_label_tokens =
      std::count_if(batch.labels.begin(), batch.labels.end(), [](int32_t l) { return l >= 0; });
  batch.progress.assign(mixture_.parts().size(), 0);
  for (const LaneReader& reader : readers_) {
    if (!answers_for(reader)) continue;
    for (size_t i = 0; i < batch.progress.size(); ++i) batch.progress[i] += reader.lane.progress(i);
  }
}

void Packer::skip(int64_t num_batches, int64_t sequences) {
  std::vector<int64_t> end_rows(index_.size(), -1);  // by lane
  for (int64_t batch = 0; batch < num_batches; ++batch, rows_.taken += sequences) {
    const int64_t first = rows_.taken + rows_.share.first_row(sequences);
    const int64_t end = rows_.taken + rows_.share.end_row(sequences);
    for (int64_t row = std::max(first, end - num_lanes()); row < end; ++row) {
      end_rows[static_cast<size_t>(row % num_lanes())] = row / num_lanes() + 1;
    }
  }
  std::vector<int64_t> lanes, missing;
  for (int64_t lane = 0; lane < num_lanes(); ++lane) {
    if (end_rows[static_cast<size_t>(lane)] < 0) continue;
    lanes.push_back(lane);
    if (index_[static_cast<size_t>(lane)] < 0) missing.push_back(lane);
  }
  make_readers(missing);
  for_each(std::ssize(lanes), [&](int64_t i) {
    LaneReader& reader = reader_of(lanes[static_cast<size_t>(i)]);
    pass_to(reader, end_rows[static_cast<size_t>(lanes[static_cast<size_t>(i)])]);
    reader.has_read = true;
  });
}

Packer::Holding Packer::count_rows(int64_t most_rows, int num_threads) {
  const int64_t length = mixture_.options().sequence_length;
  const int64_t most = most_rows == 0 ? INT64_MAX : most_rows * length;
  std::vector<int64_t> tokens(readers_.size());
  std::vector<char> has_more(readers_.size());
  const auto count_lane = [&](int64_t i) {
    MixtureLane& lane = readers_[static_cast<size_t>(i)].lane;
    const bool is_plain = most_rows > 0 && mixture_.corpus(0).holds_plainly(lane.lane(), most);
    if (is_plain) tokens[i] = most;
    while (tokens[i] < most) {
      const auto pending = static_cast<int64_t>(lane.pending().size());
      if (pending == 0) break;
      const int64_t step = std::min(pending, most - tokens[i]);
      lane.consume(step);
      tokens[i] += step;
    }
    has_more[i] = is_plain || !lane.pending().empty() ? 1 : 0;
  };
  const int usual = std::exchange(num_threads_, num_threads);
  for_each(std::ssize(readers_), count_lane);
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
  rows_.taken = begin_.taken = 0;
  states_.clear();
  for (const LaneReader& reader : readers_) read_ahead(mixture_, reader.lane.lane(), {});
  std::vector<int64_t> lanes;
  for (const LaneReader& reader : readers_) lanes.push_back(reader.lane.lane());
  readers_.clear();
  make_readers(lanes);
}

void Packer::states(std::vector<MixtureState>& out, std::vector<int64_t>* lanes) const {
  out.clear();
  if (lanes != nullptr) lanes->clear();
  for (int64_t lane = 0; lane < num_lanes(); ++lane) {
    const int32_t at = index_[static_cast<size_t>(lane)];
    if (at < 0 || !answers_for(readers_[static_cast<size_t>(at)])) continue;
    out.push_back(readers_[static_cast<size_t>(at)].lane.state());
    if (lanes != nullptr) lanes->push_back(lane);
  }
}

void Packer::for_each(int64_t count, const std::function<void(int64_t)>& body) const {
  const auto num_threads = static_cast<int>(std::min<int64_t>(num_threads_, count));
  if (num_threads <= 1) {
    for (int64_t i = 0; i < count; ++i) body(i);
    return;
  }
  std::atomic<int64_t> next = 0;
  Mutex mutex;
  std::exception_ptr error;
  const auto work = [&] {
    try {
      for (int64_t i = next++; i < count; i = next++) body(i);
    } catch (...) {
      const Lock lock(mutex);
      error = std::current_exception();
      next = count;
    }
  };
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < num_threads; ++i) threads.emplace_back(work);
  }
  if (error) std::rethrow_exception(error);
}

Batch batch_of_rows(const Mixture& mixture, int64_t first_row, int64_t sequences,
                    int64_t states_rows, std::span<const MixtureState> states, int num_threads,
                    std::vector<RowSegment>* segments) {
  Packer packer(mixture, {{}, sequences, states_rows}, states, num_threads);
  packer.skip(1, first_row - states_rows);
  Batch batch(0, sequences, mixture.options().sequence_length);
  packer.fill(batch, segments);
  return batch;
}

Batch batch_of_step(const Mixture& mixture, int64_t step, int64_t states_step,
                    std::span<const MixtureState> states, int num_threads,
                    std::vector<RowSegment>* segments) {
  if (step <= states_step) {
    fail(ErrorCode::kUsage, "step {} cannot be sampled, expected one from {} on", step,
         states_step + 1);
  }
  const int64_t lanes = mixture.options().global_sequences;
  Batch batch = batch_of_rows(mixture, (step - 1) * lanes, lanes, states_step * lanes, states,
                              num_threads, segments);
  batch.step = step;
  return batch;
}

}  // namespace skein
