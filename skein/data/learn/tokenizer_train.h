// Parts of the training of a tokenizer; see train_tokenizer() in tokenizer.h.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>

#include "skein/data/corpus/corpus.h"
#include "skein/data/tokenizer/tokenizer.h"

namespace skein {

// Calls `visit` with excerpts of the corpus, in order, of at most `excerpt_bytes` each and about
// `sample_bytes` together: all of a corpus that is not larger, otherwise excerpts chosen by a hash
// of (seed, document, position). An excerpt ends with a line if it can, and never inside a
// character.
void sample_corpus(const Corpus& corpus, int64_t sample_bytes, int64_t excerpt_bytes, uint64_t seed,
                   const std::function<void(HeldText)>& visit);

// The files of a tokenizer of byte-level BPE, by name.
std::map<std::string, std::string> train_byte_level(const Corpus& corpus, int vocab_size,
                                                    const TrainTokenizerOptions& options);

}  // namespace skein
