// Reads and continues many texts at once: continuous batching over a paged cache of keys and
// values.
//
// Step     one program reads up to ServingLayout::max_tokens tokens: one of each text that is being
//          continued, then pieces of the texts that are still being read, in the order in which
//          they came. A text joins when there are a row and pages for all of it and nobody is
//          reading what it would share, and leaves when it ends. At most 64 texts overtake one that
//          waits
// Shared   what several texts begin with is read once (PagePool), up to the first token whose score
//          or successor is asked for and not known: scores are kept with the pages, but the last
//          page of them is read again, since the next score follows from it
// Bits     on CPUs a text gets the same tokens and log-probabilities in any company, and in any
//          pieces (compile/serving_programs.h)
// Memory   planned: serving_programs of engine_layout() has the bytes of every arena
// Threads  one of the caller, and one for each further rank (serving_ranks.h). A callback must not
//          call the engine. What it throws, step() throws when the step is
//          done; its text has ended
// Errors   kInvalid for a text that is empty, too long, or has an id outside the vocabulary; the
//          message says both numbers
#pragma once

#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "skein/compile/serving_programs.h"
#include "skein/infer/page_pool.h"
#include "skein/infer/sampling.h"
#include "skein/infer/token_score.h"
#include "skein/runtime/executor.h"
#include "skein/weights/model_source.h"

namespace skein {

struct TextRequest {
  std::vector<int32_t> tokens;
  // Scores the tokens from this one on, counted from 0; 0: none. Of a text that is scored alone,
  // one token more than max_positions fits: nobody reads the last.
  int64_t score_from = 0;
  std::function<void(std::span<const TokenScore>)> on_scores = {};
  int64_t num_top = 0;  // likeliest tokens that a score lists; costs a pass over the logits
  // Continues the text by so many tokens at most.
  int64_t max_new_tokens = 0;
  SamplingOptions sampling = {};
  // Takes a new token, and returns whether the text continues. The caller decides what ends a
  // text, an end-of-text token included.
  std::function<bool(int32_t token, const TokenScore& score)> on_token = {};
  // It has all that it asked for.
  std::function<void()> on_end = {};
};

// A cache that texts of small models share.
inline constexpr int64_t kUsualCacheBytes = int64_t{256} << 20;

struct EngineOptions {
  DType compute_dtype = DType::kF32;
  int64_t max_positions = 0;    // of a text; at most text_limit()
  int64_t max_sequences = 64;   // texts at a time
  int64_t cache_bytes = 0;      // 0: room for max_sequences texts of max_positions
  int64_t max_tokens = 512;     // that a step reads; at least one of each text
  int64_t max_head_rows = 128;  // whose logits it gives; at least one of each text
  // Ranks that split the model, each a thread with a device of its own; `make_device` makes those
  // above 0, on their threads.
  int64_t tensor = 1;
  std::function<std::unique_ptr<Device>(int64_t rank)> make_device = {};
};

// The positions of texts of at most `max_length` tokens, as --max-length asks; 0: all that the
// model is meant for. Error{kUsage} if it is meant for fewer.
int64_t engine_positions(const DecoderConfig& model, int64_t max_length);

// Of what lies in the arenas of an engine.
ServingLayout engine_layout(const DecoderConfig& model, const EngineOptions& options);

class ServingRanks;

class TextEngine {
 public:
  TextEngine(const ModelSource& source, Device& device, const EngineOptions& options);
  ~TextEngine();
  TextEngine(const TextEngine&) = delete;
  TextEngine& operator=(const TextEngine&) = delete;

  // A number by which the text can be cancelled.
  int64_t add(TextRequest request);
  // Ends a text, waiting or under way, without a further call of its callbacks. One that has ended
  // is none.
  void cancel(int64_t number);
  // Runs one program; false: there was nothing to do.
  bool step();
  void run_all() {
    while (step()) {
    }
  }

  int64_t num_waiting() const { return std::ssize(waiting_); }
  int64_t num_running() const;
  // Positions of the cache, and how many of them texts under way hold, as whole pages.
  int64_t cache_positions() const { return pool_.num_pages() * pool_.page_size(); }
  int64_t cache_positions_held() const {
    return cache_positions() - pool_.num_free() * pool_.page_size();
  }
  const ProgramSet& programs() const;  // of rank 0

  struct Counts {
    int64_t steps = 0, tokens_read = 0, tokens_shared = 0, tokens_made = 0;
  };
  const Counts& counts() const { return counts_; }

 private:
  struct Text;
  class Batch;
  std::optional<KnownScores> known_scores(const TextRequest& request) const;
  void admit();
  void fill(Batch& batch);
  bool add_piece(Text& text, Batch& batch) const;
  void run(const Batch& batch);
  void take_results(const Batch& batch);
  std::span<float> logits_of(int64_t head_row);
  void sample(Text& text, int64_t head_row, TokenScore score);
  void end(Text& text);
  std::unique_ptr<Text> remove(Text& text);
  void end_those_done();

  const DecoderConfig config_;
  const ServingLayout layout_;
  const std::unique_ptr<ServingRanks> ranks_;
  PagePool pool_;
  struct Waiting {
    TextRequest request;
    int64_t number = 0;
    int64_t num_overtaken = 0;
  };
  std::deque<Waiting> waiting_;
  std::exception_ptr thrown_;                // by a callback of this step
  std::vector<std::unique_ptr<Text>> rows_;  // of the page table; null: free
  std::vector<Text*> order_;                 // those of rows_, as they came
  std::vector<int32_t> page_table_;
  bool table_changed_ = true;
  std::vector<float> logits_;  // of one row
  int64_t num_added_ = 0;
  Counts counts_;
};

}  // namespace skein
