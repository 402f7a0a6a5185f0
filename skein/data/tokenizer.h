// Tokenizers: text to token ids and back; and the training of a new one.
//
// Format   a Hugging Face tokenizer folder. `tokenizer.model` is a SentencePiece model (Llama 2):
//          the ids are SentencePiece's own. docs/corpus_format.md lists the files.
// Errors   Error{kNotFound | kInvalid | kCorrupt | kUnsupported} naming the file.
// Threads  all const functions may be called at once.
// Cost     encode takes time in proportion to the text, about 4 MB/s a thread (tokenizer_cuts.h);
//          for models with normalizer rules, unigram models and text without spaces or newlines it
//          grows faster than the text above some 100 KB.
// Source   Kudo and Richardson, "SentencePiece", EMNLP 2018; Touvron et al., "Llama 2", section 2.2
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "skein/base/file.h"
#include "skein/data/corpus.h"

namespace skein {

class Tokenizer {
 public:
  virtual ~Tokenizer() = default;

  // Loads a folder that holds `tokenizer.model`, or such a file itself. A folder with only a
  // `tokenizer.json` is Error{kUnsupported}.
  static std::unique_ptr<Tokenizer> load(const fs::path& folder_or_file);

  // The tokenizer of a SentencePiece model's bytes; `name` stands for the path in errors.
  static std::unique_ptr<Tokenizer> from_model(std::string_view model, const std::string& name,
                                               std::vector<fs::path> files = {});

  // Appends the ids of `text` to `out`; adds neither BOS nor EOS, and text that spells a control
  // token ("<s>") gives ordinary tokens.
  virtual void encode(std::string_view text, std::vector<int32_t>& out) const = 0;

  // The text of `ids`; control tokens give nothing. Ids outside 0 .. vocab_size()-1 are
  // Error{kInvalid}.
  virtual std::string decode(std::span<const int32_t> ids) const = 0;

  virtual int vocab_size() const = 0;
  virtual int bos_id() const = 0;  // -1: none
  virtual int eos_id() const = 0;  // -1: none

  // xxh3-128 of what decides the ids: two tokenizers that agree in it encode alike.
  virtual std::string content_hash() const = 0;

  // The tokenizer's files: what a run keeps beside its checkpoints.
  virtual std::vector<fs::path> files() const = 0;

  // What transformers needs to give these very ids (tokenizer_hugging_face.h): contents by file
  // name, the model itself among them. Throws Error{kUnsupported} where it cannot;
  // why_not_exported() tells so ahead, and is empty where it can.
  virtual std::map<std::string, std::string> export_files() const { return {}; }
  virtual std::string why_not_exported() const { return "it is no SentencePiece model"; }
};

// What a folder of a tokenizer may hold, tokenizer.model first.
std::span<const char* const> tokenizer_file_names();

// Whether a file of this name beside tokenizer.model is part of a tokenizer.
bool is_tokenizer_file(std::string_view name);

// The tokenizer that a person named by `setting` ("data.tokenizer"): what is not there
// is Error{kUsage}, which names the setting.
std::unique_ptr<Tokenizer> load_tokenizer(const fs::path& path, const std::string& setting);

struct TrainTokenizerOptions {
  int64_t sample_bytes = int64_t{12} << 20;  // text that the merges are learnt from, at most
  uint64_t seed = 1;                         // which documents are in the sample
  bool overwrite = false;                    // a tokenizer that is in `out_dir` already
};

// Trains a SentencePiece BPE model as Llama 2's (byte fallback, single digits, identity
// normalization, unk 0, bos 1, eos 2) and writes `out_dir`: tokenizer.model, tokenizer.json,
// tokenizer_config.json, special_tokens_map.json, which transformers loads as they are. The files
// are a function of the corpus, vocab_size and options.
void train_tokenizer(const Corpus& corpus, int vocab_size, const fs::path& out_dir,
                     const TrainTokenizerOptions& options = {});

// Writes the same files for a SentencePiece model that is there already (Meta's tokenizer.model).
void convert_tokenizer(const fs::path& folder_or_file, const fs::path& out_dir,
                       bool overwrite = false);

}  // namespace skein
