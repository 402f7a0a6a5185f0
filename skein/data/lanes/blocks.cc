#include "skein/data/lanes/blocks.h"

#include <algorithm>
#include <bit>

#include "skein/base/error.h"
#include "skein/base/numbers/philox.h"
#include "skein/base/text/units.h"
#include "skein/base/text/utf8.h"

namespace skein {
namespace {

constexpr int64_t kMinSegmentBytes = int64_t{256} << 10;
constexpr int64_t kSegmentsPerBlock = 4;
constexpr int64_t kSegmentBytesPerToken = 16;  // tokens are shorter, so a row fits into a segment
constexpr int64_t kBlocksPerLane = 1024;
constexpr int64_t kSmallWindowBytes = int64_t{32} << 10;
constexpr uint32_t kFeistelRounds = 8;

}  // namespace

int64_t CorpusBlocks::segment_bytes(int64_t sequence_length) {
  return std::max(kMinSegmentBytes, kSegmentBytesPerToken * sequence_length);
}

CorpusBlocks::CorpusBlocks(const DocumentSource& source, int64_t num_lanes, int64_t sequence_length)
    : source_(source),
      num_bytes_(source.num_bytes()),
      segment_bytes_(segment_bytes(sequence_length)) {
  if (num_bytes_ / num_lanes < kMinBytesPerLane) {
    fail(ErrorCode::kUsage,
         "{}: the corpus holds {} bytes of text in {} documents, too little to divide among {} "
         "sequences (at least {} bytes each, {} in all): add text or lower batch.global_sequences",
         source.name(), num_bytes_, source.num_documents(), num_lanes, kMinBytesPerLane,
         kMinBytesPerLane * num_lanes);
  }
  const int64_t plenty = ceil_div(num_bytes_, kSegmentsPerBlock * segment_bytes_);
  const int64_t shrunk = std::min(kBlocksPerLane * num_lanes, num_bytes_ / kSmallWindowBytes);
  num_blocks_ = std::max({plenty, shrunk, num_lanes});
}

int64_t CorpusBlocks::window(int64_t index) const {
  return static_cast<int64_t>(static_cast<__int128>(index) * num_bytes_ / num_blocks_);
}

int64_t CorpusBlocks::boundary(int64_t index) const {
  const int64_t begin = window(index);
  if (begin == num_bytes_) return begin;
  const DocumentPlace at = source_.find(begin);
  if (at.begin == begin) return begin;
  const int64_t end = at.begin + source_.document_bytes(at.document);
  if (end < window(index + 1)) return end;
  return utf8_boundary(at, begin);
}

// The first byte at or after `position` of the document that does not split a UTF-8 character. Text
// that is not UTF-8 moves by at most three bytes.
int64_t CorpusBlocks::utf8_boundary(const DocumentPlace& at, int64_t position) const {
  const HeldText held = source_.part(at.document, position - at.begin, 3);
  for (const char c : held.view()) {
    if (!utf8::is_continuation(c)) break;
    ++position;
  }
  return position;
}

void CorpusBlocks::read_ahead(int64_t index, int64_t byte, int64_t num_bytes) const {
  const int64_t begin = window(index) + byte, end = window(index + 1);
  source_.read_ahead({begin, std::min(begin + num_bytes, end)});
  if (begin + num_bytes < end) source_.read_ahead({end, end + 1});
}

HeldText CorpusBlocks::text(const Segment& segment) const {
  return source_.part(segment.document, segment.range.begin - segment.document_begin,
                      segment.range.size());
}

Segment CorpusBlocks::segment(int64_t position, int64_t block_end) const {
  return segment_of(source_.find(position), position, block_end);
}

Segment CorpusBlocks::next_segment(const Segment& segment, int64_t block_end) const {
  const int64_t position = segment.range.end;
  DocumentPlace at{segment.document, segment.document_begin};
  if (segment.ends_document) {
    at.begin = position;
    do {
      ++at.document;
    } while (source_.document_bytes(at.document) == 0);
  }
  return segment_of(at, position, block_end);
}

Segment CorpusBlocks::segment_of(const DocumentPlace& at, int64_t position,
                                 int64_t block_end) const {
  const int64_t document_end = at.begin + source_.document_bytes(at.document);
  int64_t end = std::min(document_end, block_end);
  const int64_t num_pieces = ceil_div(end - position, segment_bytes_);
  if (num_pieces > 1) {
    end = std::min(end, utf8_boundary(at, position + ceil_div(end - position, num_pieces)));
  }
  return {at.document, at.begin, {position, end}, end == document_end};
}

BlockOrder::BlockOrder(uint64_t seed, int64_t num_blocks)
    : seed_(seed),
      num_blocks_(num_blocks),
      half_bits_(std::max(
          1, (static_cast<int>(std::bit_width(static_cast<uint64_t>(num_blocks - 1))) + 1) / 2)) {}

int64_t BlockOrder::block(int64_t position) const {
  const auto epoch_number = static_cast<uint32_t>(epoch(position));
  const uint64_t mask = (uint64_t{1} << half_bits_) - 1;
  auto value = static_cast<uint64_t>(position % num_blocks_);
  do {
    uint64_t left = value >> half_bits_, right = value & mask;
    for (uint32_t round = 0; round < kFeistelRounds; ++round) {
      const Philox philox(seed_, RandomPurpose::kDataOrder, epoch_number, round);
      const uint64_t mixed = left ^ (philox.word(right) & mask);
      left = right;
      right = mixed;
    }
    value = left << half_bits_ | right;
  } while (value >= static_cast<uint64_t>(num_blocks_));
  return static_cast<int64_t>(value);
}

}  // namespace skein
