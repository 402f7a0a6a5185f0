// Tokenizers: text to token ids and back; and training of a new one.
//
// Format   a Hugging Face tokenizer folder: a SentencePiece model (Llama 2), whose own ids count,
//          or BPE of tokenizer.json, tekken, tiktoken, or vocab.json with merges.txt, with the
//          tokens that the files beside it add (tokenizer/folder/files.h, docs/corpus_format.md).
// Errors   Error{kNotFound | kInvalid | kCorrupt | kUnsupported} naming the file.
// Threads  several threads may call const functions at once.
// Cost     BPE models: in proportion to the text (sentencepiece_bpe.h). Models with rules of
//          normalization and unigram models go through libsentencepiece, at some 4 MB/s per
//          thread, and above some 100 KB in more time than in proportion.
// Source   Kudo and Richardson, "SentencePiece", EMNLP 2018; Touvron et al., "Llama 2", section 2.2
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "skein/base/files/file.h"
#include "skein/bpe/steps/split_pattern.h"
#include "skein/data/corpus/corpus.h"
#include "skein/data/tokenizer/byte_level/added_tokens.h"
#include "skein/data/tokenizer/folder/files.h"

namespace skein {

class Tokenizer {
 public:
  virtual ~Tokenizer() = default;

  // Loads a folder, or a file that holds a vocabulary; so it does objects under s3://BUCKET/KEY.
  static std::unique_ptr<Tokenizer> load(const fs::path& folder_or_file);

  // The tokenizer of a SentencePiece model's bytes; `name` replaces the path in errors.
  static std::unique_ptr<Tokenizer> from_model(std::string_view model, const std::string& name,
                                               std::vector<fs::path> files = {});

  // Appends the ids of `text` to `out`, without BOS and EOS. Text that spells a control token
  // ("<s>") gives ordinary tokens.
  virtual void encode(std::string_view text, std::vector<int32_t>& out) const = 0;

  // As encode(), and text that spells a special token is that token.
  virtual void parse(std::string_view text, std::vector<int32_t>& out) const { encode(text, out); }

  void encode_as(SpecialTokens special, std::string_view text, std::vector<int32_t>& out) const {
    special == SpecialTokens::kParse ? parse(text, out) : encode(text, out);
  }

  // The special tokens that parse() finds.
  virtual const AddedTokens& special_tokens() const;

  // The text of `ids`; control tokens give no text. Ids outside 0 .. vocab_size()-1 are
  // Error{kInvalid}.
  virtual std::string decode(std::span<const int32_t> ids) const = 0;

  virtual int vocab_size() const = 0;
  // Whether an id has a token; a vocabulary may have holes, and a model rows behind its end.
  virtual bool has_token(int32_t id) const { return id >= 0 && id < vocab_size(); }
  virtual int bos_id() const = 0;  // -1: none
  virtual int eos_id() const = 0;  // -1: none
  // mask_token of the files beside the vocabulary; -1: none.
  virtual int mask_id() const { return -1; }
  // Whether a token begins a word: it spells white space at its beginning.
  virtual bool begins_word(int32_t id) const;

  // What a person should know before training: where EOS was found, or that there is none.
  virtual std::span<const std::string> notes() const { return {}; }

  // xxh3-128 of everything that decides the ids: tokenizers with the same hash encode alike.
  virtual std::string content_hash() const = 0;

  // The tokenizer's files or objects (read_file_or_object), which a run keeps beside its
  // checkpoints.
  virtual std::vector<fs::path> files() const = 0;

  // The files with which transformers gives the same ids (hugging_face_files.h), contents by file
  // name. Throws Error{kUnsupported} if that is impossible;
  // why_not_exported() says why in advance, and is empty if it is possible.
  virtual std::map<std::string, std::string> export_files() const { return {}; }
  virtual std::string why_not_exported() const { return ""; }
};

// The ids of a text as its beginning: parse(), with BOS before it where the tokenizer has one and
// the text does not spell it.
std::vector<int32_t> tokens_with_bos(const Tokenizer& tokenizer, std::string_view text);

// What a person should know before training with it: its notes, and keys of its files that Skein
// does not know. warn_of() logs them.
std::vector<std::string> notes_of(const Tokenizer& tokenizer);
void warn_of(const Tokenizer& tokenizer);

// The tokenizer that a person named by `setting` ("data.tokenizer"). A missing or unsupported one
// is Error{kUsage} naming the setting.
std::unique_ptr<Tokenizer> load_tokenizer(const fs::path& path, const std::string& setting);

enum class TokenizerKind { kSentencePiece, kByteLevel };

struct TrainTokenizerOptions {
  TokenizerKind kind = TokenizerKind::kSentencePiece;
  // The most text from which merges are learnt; 0: 12 MiB for SentencePiece, 1 GiB for byte-level.
  int64_t sample_bytes = 0;
  uint64_t seed = 1;       // which documents are in the sample
  bool overwrite = false;  // a tokenizer that `out_dir` already has

  // Of byte-level BPE alone.
  bpe::SplitPattern::Kind pattern = bpe::SplitPattern::Kind::kLlama3;
  // Tokens that no text spells, the first ids; the first of them ends a document.
  std::vector<std::string> special = {"<|endoftext|>"};
  int64_t min_count = 2;  // of a pair that becomes a token
  int num_threads = 0;    // 0: as many as this process may use cores; the result is the same
  std::function<void(const char* pass, int64_t done, int64_t of)> on_progress;
};

// Trains a tokenizer and writes it to `out_dir`, in files that transformers loads directly. They
// are a function of the corpus, vocab_size and options.
//   SentencePiece  BPE like Llama 2's (byte fallback, single digits, identity normalization, unk 0,
//                  bos 1, eos 2): tokenizer.model, tokenizer.json, tokenizer_config.json,
//                  special_tokens_map.json
//   byte-level     like GPT-2's and Llama 3's: tokenizer.json, tokenizer_config.json. The pattern
//                  of Qwen 2 comes with normalization form C. Memory: 100 bytes a different word
void train_tokenizer(const Corpus& corpus, int vocab_size, const fs::path& out_dir,
                     const TrainTokenizerOptions& options = {});

// Writes the same files for an existing SentencePiece model (Meta's tokenizer.model).
void convert_tokenizer(const fs::path& folder_or_file, const fs::path& out_dir,
                       bool overwrite = false);

}  // namespace skein
