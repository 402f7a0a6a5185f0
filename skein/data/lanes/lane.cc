#include "skein/data/lanes/lane.h"

#include <algorithm>
#include <limits>

#include "skein/base/error.h"
#include "skein/data/corpus/loss_spans.h"
#include "skein/data/lanes/counted_tokens.h"

namespace skein {
namespace {

// No tokenizer in use averages so many bytes per token: a corpus with more text needs no counting.
constexpr int64_t kMaxBytesPerToken = 16;

const LaneOptions& checked(const LaneOptions& options) {
  if (options.global_sequences < 1) {
    fail(ErrorCode::kUsage, "batch.global_sequences is {}, expected at least 1",
         options.global_sequences);
  }
  if (options.sequence_length < 2) {
    fail(ErrorCode::kUsage,
         "data.sequence_length is {}, expected at least 2: a token and the next one",
         options.sequence_length);
  }
  if (options.sequence_length > std::numeric_limits<int32_t>::max() ||
      options.global_sequences > std::numeric_limits<int32_t>::max()) {
    fail(ErrorCode::kUsage,
         "data.sequence_length is {} and batch.global_sequences {}, expected below 2^31",
         options.sequence_length, options.global_sequences);
  }
  return options;
}

// The last block at which a lane may be: its position must fit, and its epoch must fit 32 bits.
int64_t max_block(const LaneContext& context) {
  const int64_t lanes = context.options().global_sequences;
  const int64_t blocks = context.blocks().num_blocks();
  const int64_t epochs =
      std::min<int64_t>(std::numeric_limits<uint32_t>::max(),
                        std::numeric_limits<int64_t>::max() / std::max(blocks, lanes) - 2);
  return epochs * blocks / lanes - 1;
}

bool is_possible(const LaneContext& context, const LaneState& state) {
  return state.block >= 0 && state.block <= max_block(context) && state.byte >= 0 &&
         state.byte <= context.blocks().num_bytes() && state.token >= 0;
}

}  // namespace

LaneContext::LaneContext(const DocumentSource& source, const Tokenizer& tokenizer,
                         const LaneOptions& options)
    : source_(source),
      tokenizer_(tokenizer),
      options_(checked(options)),
      blocks_(source, options.global_sequences, options.sequence_length),
      order_(options.seed, blocks_.num_blocks()) {
  if (options_.vocab_size == 0) options_.vocab_size = tokenizer.vocab_size();
  if (options_.mask.probability > 0) {
    mask_.emplace(tokenizer, options_.mask, options_.vocab_size, options_.seed);
  }
  if (options_.completion_only && !source.has_loss_spans()) {
    fail(ErrorCode::kUsage,
         "{}: the corpus does not say which bytes are completions (it has no column `{}`), which "
         "data.loss_on = \"completion\" needs: make it of conversations, with `skein data ingest "
         "--chat-template`, or leave data.loss_on out",
         source.name(), kLossSpans);
  }
  if (!options_.may_be_small) check_corpus_fills_a_batch();
}

void LaneContext::check_corpus_fills_a_batch() const {
  const int64_t needed = options_.global_sequences * options_.sequence_length;
  if (blocks_.num_bytes() / kMaxBytesPerToken >= needed) return;
  int64_t found = 0;
  std::vector<int32_t> tokens;
  for (int64_t position = 0; position < blocks_.num_bytes();) {
    const Segment segment = blocks_.segment(position, blocks_.num_bytes());
    tokenize(segment, tokens);
    found += static_cast<int64_t>(tokens.size());
    if (found >= needed) return;
    position = segment.range.end;
  }
  fail(ErrorCode::kUsage,
       "{}: the corpus is smaller than one batch: it holds {} bytes of text in {} documents, {} "
       "tokens, and {} sequences of {} tokens need {}: add text (to a validation corpus with a "
       "larger --validation-fraction of `skein data ingest`), or lower batch.global_sequences or "
       "data.sequence_length",
       source_.name(), blocks_.num_bytes(), source_.num_documents(), found,
       options_.global_sequences, options_.sequence_length, needed);
}

// The last of `tokens` but white space.
LaneContext::LastToken LaneContext::last_of(std::span<const int32_t> tokens) const {
  constexpr size_t kMostBlank = 4;
  for (size_t blank = 0; blank < std::min(kMostBlank, tokens.size()); ++blank) {
    const int32_t id = tokens[tokens.size() - 1 - blank];
    if (id == tokenizer_.eos_id()) return LastToken::kEos;
    if (tokenizer_.special_tokens().holds(id)) return LastToken::kSpecial;
    const std::string text = tokenizer_.decode(std::span(&id, 1));
    if (text.find_first_not_of(" \t\r\n") != text.npos) break;
  }
  return LastToken::kText;
}

void LaneContext::count_tokens(const Segment& segment, std::string_view text,
                               std::span<const int32_t> of_text, const Frame& frame,
                               std::vector<uint8_t>& counts) const {
  const int64_t begin = segment.range.begin - segment.document_begin;
  const std::vector<ByteRange> spans =
      spans_within(source_.loss_spans(segment.document), {begin, begin + segment.range.size()});
  counts = counted_tokens(tokenizer_, options_.special_tokens, text, of_text, spans);
  const bool ends_counted =
      frame.last == LastToken::kText && !spans.empty() && spans.back().end == segment.range.size();
  if (frame.has_bos) counts.insert(counts.begin(), 0);
  if (frame.has_eos) counts.push_back(ends_counted ? 1 : 0);
}

void LaneContext::tokenize(const Segment& segment, std::vector<int32_t>& tokens,
                           std::vector<uint8_t>* counts) const {
  tokens.clear();
  Frame frame{.has_bos = options_.prepend_bos && tokenizer_.bos_id() >= 0,
              .has_eos = segment.ends_document && tokenizer_.eos_id() >= 0};
  if (frame.has_bos) tokens.push_back(tokenizer_.bos_id());
  const HeldText text = blocks_.text(segment);
  tokenizer_.encode_as(options_.special_tokens, text, tokens);
  // What a rendered conversation spells itself would stand there twice.
  if (options_.special_tokens == SpecialTokens::kParse) {
    if (frame.has_bos && tokens.size() > 1 && tokens[1] == tokens[0]) {
      tokens.erase(tokens.begin());
      frame.has_bos = false;
    }
    frame.last = last_of(std::span(tokens).subspan(frame.has_bos ? 1 : 0));
    if (frame.last == LastToken::kEos) frame.has_eos = false;
  }
  if (counts != nullptr && options_.completion_only) {
    count_tokens(segment, text, std::span(tokens).subspan(frame.has_bos ? 1 : 0), frame, *counts);
  }
  if (frame.has_eos) tokens.push_back(tokenizer_.eos_id());
  source_.forget(text);
  for (const int32_t id : tokens) {
    if (id < 0 || id >= options_.vocab_size) {
      fail(
          ErrorCode::kInvalid,
          "{}: the tokenizer gives id {} in document {}, expected 0 to {}: set model.vocab_size to "
          "the tokenizer's, {}",
          source_.name(), id, segment.document, options_.vocab_size - 1, tokenizer_.vocab_size());
    }
  }
}

bool LaneContext::holds_plainly(int64_t lane, int64_t num_tokens) const {
  int64_t bytes = 0;
  for (int64_t at = lane; at < blocks_.num_blocks(); at += options_.global_sequences) {
    bytes += blocks_.block(order_.block(at)).size();
    if (bytes / kMaxBytesPerToken >= num_tokens) return true;
  }
  return false;
}

int64_t LaneContext::epoch(int64_t lane, const LaneState& state) const {
  return order_.epoch(lane + state.block * options_.global_sequences);
}

Lane::Lane(const LaneContext& context, int64_t lane, const LaneState& state)
    : context_(&context), lane_(lane), state_(state) {
  const bool possible = is_possible(context, state);
  if (possible) enter_block();
  const int64_t position = block_.begin + state.byte;
  bool begins_there = possible && position < block_.end;
  if (begins_there) {
    segment_ = context.blocks().segment(block_.begin, block_.end);
    while (segment_.range.end <= position && segment_.range.end < block_.end) {
      segment_ = context.blocks().next_segment(segment_, block_.end);
    }
    begins_there = found_ = segment_.range.begin == position;
  }
  if (!begins_there) {
    fail(ErrorCode::kInvalid,
         "{}: lane {} cannot continue at block {}, byte {}, token {}: no document begins there; "
         "the checkpoint was trained on another corpus",
         context.source().name(), lane, state.block, state.byte, state.token);
  }
}

int64_t Lane::block_at(const LaneContext& context, int64_t lane, int64_t number) {
  return context.order().block(lane + number * context.options().global_sequences);
}

void Lane::enter_block() {
  block_ = context_->blocks().block(block_at(*context_, lane_, state_.block));
  asked_end_ = block_.begin;
  next_block_asked_ = false;
}

void Lane::read_ahead(const LaneContext& context, int64_t lane, const LaneState& state) {
  const CorpusBlocks& blocks = context.blocks();
  if (!is_possible(context, state)) return;  // which the constructor refuses
  blocks.read_ahead(block_at(context, lane, state.block), state.byte, 2 * blocks.segment_bytes());
}

int64_t Lane::ahead_bytes(const LaneContext& context) {
  constexpr int64_t kPages = 6;  // at the ends of the current and the next text, and of offsets
  return 3 * context.blocks().segment_bytes() + kPages * ObjectCache::kPageBytes;
}

// Behind the current segment at least one more is on its way: none is longer than segment_bytes().
void Lane::read_ahead() {
  const CorpusBlocks& blocks = context_->blocks();
  const int64_t bytes = blocks.segment_bytes(), begin = segment_.range.end;
  if (asked_end_ < std::min(begin + bytes, block_.end)) {
    const int64_t end = std::min(begin + 2 * bytes, block_.end);
    context_->source().read_ahead({std::max(asked_end_, begin), end});
    asked_end_ = end;
  }
  const bool goes_on =
      !context_->options().once || context_->epoch(lane_, {.block = state_.block + 1}) == 0;
  if (asked_end_ == block_.end && !next_block_asked_ && goes_on &&
      state_.block < max_block(*context_)) {
    blocks.read_ahead(block_at(*context_, lane_, state_.block + 1), 0, 2 * bytes);
    next_block_asked_ = true;
  }
}

std::span<const int32_t> Lane::pending() {
  while (tokens_.empty() && !has_ended()) load_segment();
  if (tokens_.empty()) return {};
  return std::span<const int32_t>(tokens_).subspan(state_.token);
}

void Lane::load_segment() {
  if (!found_) segment_ = context_->blocks().segment(block_.begin + state_.byte, block_.end);
  found_ = true;
  read_ahead();
  context_->tokenize(segment_, tokens_, &counts_);
  const auto size = static_cast<int64_t>(tokens_.size());
  if (state_.token > 0 && state_.token >= size) {
    fail(ErrorCode::kInvalid,
         "{}: lane {} cannot continue at token {} of document {}, which has {}: the checkpoint was "
         "trained with another corpus or tokenizer",
         context_->source().name(), lane_, state_.token, segment_.document, size);
  }
  if (size == 0) leave_segment();
}

int64_t Lane::progress() const {
  const auto share = [](int64_t part, int64_t whole) {
    return static_cast<double>(part) / static_cast<double>(whole);
  };
  double bytes = static_cast<double>(state_.byte);
  if (!tokens_.empty()) {  // otherwise none of its tokens has been read
    bytes += static_cast<double>(segment_.range.size()) *
             share(state_.token, static_cast<int64_t>(tokens_.size()));
  }
  return state_.block * kBlockProgress +
         static_cast<int64_t>(bytes / static_cast<double>(block_.size()) *
                              static_cast<double>(kBlockProgress));
}

void Lane::consume(int64_t count) {
  state_.token += count;
  if (state_.token == static_cast<int64_t>(tokens_.size())) leave_segment();
}

void Lane::leave_segment() {
  tokens_.clear();
  counts_.clear();
  state_.token = 0;
  state_.byte = segment_.range.end - block_.begin;
  if (segment_.range.end < block_.end) {
    segment_ = context_->blocks().next_segment(segment_, block_.end);
    return;
  }
  state_.byte = 0;
  ++state_.block;
  found_ = false;
  enter_block();
}

}  // namespace skein
