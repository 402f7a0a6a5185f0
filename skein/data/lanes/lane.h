// A lane: the endless stream of tokens that feeds one sequence slot of the global batch.
//
// Formula  lane i of B takes the blocks at positions i, i+B, i+2B, ... of the block order
//          (blocks.h), so its k-th block is block(i + k B). Every segment of a block becomes
//            [BOS] ids [EOS]
//          with BOS if `prepend_bos`, EOS if the document ends (not where it is cut), each only if
//          the tokenizer has one. With SpecialTokens::kParse, a BOS that the text begins with and
//          an EOS that it ends with (but for white space) are these. With `completion_only` tokens
//          count for the loss that lie in the document's spans (counted_tokens.h), and EOS where a
//          span ends with the document, unless a special token ends it. Tokens depend on (seed, B,
//          lane, index) alone.
// Format   docs/data_order.md
// Threads  several lanes may share a LaneContext at once; a Lane belongs to one thread.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "skein/data/lanes/blocks.h"
#include "skein/data/lanes/token_mask.h"
#include "skein/data/tokenizer/tokenizer.h"

namespace skein {

struct LaneOptions {
  uint64_t seed = 1;
  int64_t global_sequences = 1;  // B, the number of lanes (batches may have other sizes)
  int64_t sequence_length = 0;   // tokens a row
  bool document_mask = true;     // attention, positions and labels stop at document boundaries
  bool prepend_bos = true;       // false gives the plain concatenation with EOS only
  SpecialTokens special_tokens = SpecialTokens::kText;
  int64_t vocab_size = 0;        // of the model; 0: the tokenizer's size
  bool may_be_small = false;     // a corpus smaller than one batch is read again and again
  bool once = false;             // a lane ends with its share of the first epoch
  bool completion_only = false;  // of the corpus's loss spans alone is there a loss
  MaskOptions mask = {};         // of a model that finds masked tokens
};

// One whole block in units of progress. Progress is an integer, so that the sum over lanes does not
// depend on which rank adds which lanes.
inline constexpr int64_t kBlockProgress = int64_t{1} << 20;

// The position of a lane: the next token to read.
struct LaneState {
  int64_t block = 0;  // blocks finished
  int64_t byte = 0;   // in this block: beginning of the current segment
  int64_t token = 0;  // tokens of that segment that were already read

  bool operator==(const LaneState&) const = default;
};

// What all lanes share. `source` and `tokenizer` must outlive it.
class LaneContext {
 public:
  // Errors: kUsage for impossible options, and if the corpus is smaller than one batch, unless it
  // may be. To find out, a small corpus is tokenized, up to one batch.
  LaneContext(const DocumentSource& source, const Tokenizer& tokenizer, const LaneOptions& options);

  const LaneOptions& options() const { return options_; }
  const DocumentSource& source() const { return source_; }
  const CorpusBlocks& blocks() const { return blocks_; }
  const BlockOrder& order() const { return order_; }
  const std::optional<TokenMask>& mask() const { return mask_; }

  // Replaces `tokens` by those of the segment, and `counts` (may be null) by a flag for each: 1
  // where it counts for the loss; it is empty where all do. Errors: kInvalid for an id outside the
  // vocabulary.
  void tokenize(const Segment& segment, std::vector<int32_t>& tokens,
                std::vector<uint8_t>* counts = nullptr) const;

  // How often lane `lane` has gone through its share of the corpus.
  int64_t epoch(int64_t lane, const LaneState& state) const;

  // Whether the text of the lane's share of the first epoch is plainly enough for so many tokens,
  // without tokenizing it. Where a tokenizer has longer tokens than any in use, it may be less.
  bool holds_plainly(int64_t lane, int64_t num_tokens) const;

  // How often all lanes together have read the corpus; `progress` is the sum over lanes.
  double epochs(double progress) const {
    return progress / static_cast<double>(kBlockProgress) /
           static_cast<double>(blocks_.num_blocks());
  }

 private:
  void check_corpus_fills_a_batch() const;
  enum class LastToken : uint8_t { kText, kSpecial, kEos };
  struct Frame {  // of a segment
    bool has_bos = false, has_eos = false;
    LastToken last = LastToken::kText;
  };
  LastToken last_of(std::span<const int32_t> tokens) const;
  void count_tokens(const Segment& segment, std::string_view text, std::span<const int32_t> of_text,
                    const Frame& frame, std::vector<uint8_t>& counts) const;

  const DocumentSource& source_;
  const Tokenizer& tokenizer_;
  LaneOptions options_;
  CorpusBlocks blocks_;
  BlockOrder order_;
  std::optional<TokenMask> mask_;
};

class Lane {
 public:
  // 0 <= lane < B. Errors: kInvalid if `state` is not a possible position in this corpus.
  Lane(const LaneContext& context, int64_t lane, const LaneState& state = {});

  // Asks for the text with which a lane begins in that state. Many lanes that are asked for before
  // the first is made wait for a store once, not each in its turn.
  static void read_ahead(const LaneContext& context, int64_t lane, const LaneState& state);
  // The most that a lane holds of a store's text and offsets, between what it reads and what it
  // asked for.
  static int64_t ahead_bytes(const LaneContext& context);

  // The tokens of the current segment that are still to be read: at least one, except at the end of
  // a lane that is read `once`. Tokenizes when a new segment begins. Valid until the next call on
  // this lane.
  std::span<const int32_t> pending();
  // Whether each of pending() counts for the loss; empty: all do. After pending().
  std::span<const uint8_t> counts() const {
    return counts_.empty() ? std::span<const uint8_t>()
                           : std::span(counts_).subspan(static_cast<size_t>(state_.token));
  }

  // The document of pending(), by its number in the corpus.
  int64_t document() const { return segment_.document; }

  // Reads `count` <= pending().size() tokens.
  void consume(int64_t count);

  // Whether the next token is not the first of its segment.
  bool inside_segment() const { return state_.token > 0; }

  int64_t lane() const { return lane_; }
  const LaneState& state() const { return state_; }

  // How far this lane has come, in kBlockProgress-ths of a block, in proportion to the bytes of the
  // block and, within a segment, to its tokens.
  int64_t progress() const;

 private:
  static int64_t block_at(const LaneContext& context, int64_t lane, int64_t number);
  void enter_block();
  void read_ahead();
  void load_segment();
  void leave_segment();
  // Whether it is read `once` and has been: block number p of the order is of epoch p / n.
  bool has_ended() const { return context_->options().once && context_->epoch(lane_, state_) > 0; }

  const LaneContext* context_;
  int64_t lane_;
  LaneState state_;
  ByteRange block_;        // of state_.block
  int64_t asked_end_ = 0;  // of the text of this block that was asked for ahead
  bool next_block_asked_ = false;
  Segment segment_;  // the current one, once `found_`
  bool found_ = false;
  std::vector<int32_t> tokens_;  // of the current segment; empty: not tokenized yet
  std::vector<uint8_t> counts_;  // of them; empty: all count
};

}  // namespace skein
