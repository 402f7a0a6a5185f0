#include "skein/data/learn/tokenizer_train.h"

#include <sentencepiece_trainer.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <deque>
#include <optional>
#include <utility>
#include <vector>

#include "skein/base/error.h"
#include "skein/base/files/lost_pages.h"
#include "skein/base/numbers/hash.h"
#include "skein/base/text/utf8.h"
#include "skein/data/learn/write_tokenizer.h"
#include "skein/data/tokenizer/tokenizer.h"
#include "skein/objects/store.h"

namespace skein {
namespace {

// The unit that SentencePiece calls a sentence: an excerpt of several lines, so that merges are
// learnt from text as encode() sees it, newlines included, and not line by line.
constexpr int64_t kSentenceBytes = 4096;
constexpr int kReservedPieces = 3 + 256;  // <unk>, <s>, </s>, bytes

// Where an excerpt of at most `limit` bytes from `begin` ends: after a newline if there is one,
// otherwise before a character.
size_t excerpt_end(std::string_view text, size_t begin, size_t limit) {
  size_t end = std::min(text.size(), begin + limit);
  if (end == text.size()) return end;
  const size_t newline = text.substr(0, end).rfind('\n');
  if (newline != std::string_view::npos && newline >= begin) return newline + 1;
  while (end > begin + 1 && utf8::is_continuation(text[end])) --end;
  return end;
}

// The first line that begins after `begin` within `limit` bytes, otherwise the first character.
size_t line_start(std::string_view text, size_t begin, size_t limit) {
  const size_t newline = text.substr(begin, limit).find('\n');
  if (newline != std::string_view::npos) return begin + newline + 1;
  begin = utf8::next_character_start(text, begin);
  return begin;
}

class Sentences : public sentencepiece::SentenceIterator {
 public:
  explicit Sentences(std::vector<std::string> texts) : texts_(std::move(texts)) {}
  bool done() const override { return index_ >= texts_.size(); }
  void Next() override { ++index_; }
  const std::string& value() const override { return texts_[index_]; }
  sentencepiece::util::Status status() const override { return {}; }

 private:
  std::vector<std::string> texts_;
  size_t index_ = 0;
};

// The first number behind `words` in `text`; nullopt where there is none.
std::optional<int> number_behind(const std::string& text, const std::string& words) {
  const size_t at = text.find(words);
  if (at == std::string::npos) return std::nullopt;
  int number = 0;
  const char* begin = text.data() + at + words.size();
  const auto [end, error] = std::from_chars(begin, text.data() + text.size(), number);
  return error == std::errc() ? std::optional(number) : std::nullopt;
}

// Throws Error{kUsage} where SentencePiece refuses the vocabulary size; `reason` is what it says.
void refuse_vocab_size(int vocab_size, const std::string& corpus, const std::string& reason) {
  if (const auto most = number_behind(reason, "set it to a value <= ")) {
    fail(ErrorCode::kUsage,
         "--vocab-size {}: the text of {} gives {} tokens at most: expected no more than that, or "
         "more text",
         vocab_size, corpus, *most);
  }
  const std::string found = fmt::format("required_chars. {} vs ", vocab_size);
  if (const auto least = number_behind(reason, found)) {
    fail(ErrorCode::kUsage,
         "--vocab-size {}: bytes, control tokens and the characters of {} are {} tokens already: "
         "expected at least that",
         vocab_size, corpus, *least);
  }
}

// Trains as Llama 2's tokenizer was. SentencePiece writes the number of threads into the model, so
// a constant keeps the file a function of the text. Only reading the sentences uses the threads.
std::string train_model(std::vector<std::string> sentences, int vocab_size,
                        const std::string& corpus) {
  Sentences iterator(std::move(sentences));
  std::string model;
  const auto status = sentencepiece::SentencePieceTrainer::Train(
      {{"model_type", "bpe"},
       {"vocab_size", std::to_string(vocab_size)},
       {"num_threads", "16"},
       {"byte_fallback", "true"},
       {"split_digits", "true"},
       {"allow_whitespace_only_pieces", "true"},
       {"normalization_rule_name", "identity"},
       {"remove_extra_whitespaces", "false"},
       {"add_dummy_prefix", "true"},
       {"character_coverage", "0.99995"},
       {"max_sentence_length", std::to_string(2 * kSentenceBytes)},
       {"input_sentence_size", "0"},
       {"unk_id", "0"},
       {"bos_id", "1"},
       {"eos_id", "2"},
       {"pad_id", "-1"},
       {"unk_surface", " \u2047 "},
       {"minloglevel", "2"}},
      &iterator, &model);
  if (!status.ok()) {
    std::string reason = status.error_message();  // "file.cc(1) [condition] what for people"
    if (const size_t skip = reason.rfind("] "); skip != std::string::npos)
      reason.erase(0, skip + 2);
    refuse_vocab_size(vocab_size, corpus, reason);
    fail(ErrorCode::kInvalid, "cannot train a tokenizer of {} tokens on {}: {}", vocab_size, corpus,
         reason);
  }
  return model;
}

void prepare_folder(const fs::path& out_dir, bool overwrite) {
  if (is_object_url(out_dir)) {
    require_store(out_dir.string(), "--out");
  } else if (fs::exists(out_dir) && !fs::is_directory(out_dir)) {
    fail(ErrorCode::kUsage, "--out {}: is a file: expected the name of a folder to write",
         out_dir.string());
  }
  if (!overwrite) {
    const std::vector<fs::path> files = tokenizer_files_in(out_dir);
    if (!files.empty()) {
      fail(ErrorCode::kUsage,
           "--out {}: holds a tokenizer already ({}): name another folder, or --overwrite to "
           "replace it",
           out_dir.string(), files.front().filename().string());
    }
  }
}

void check_request(const Corpus& corpus, int vocab_size, int num_reserved, const char* reserved) {
  if (vocab_size <= num_reserved || vocab_size > (1 << 20)) {
    fail(ErrorCode::kUsage, "--vocab-size {}: expected more than {} ({}) and at most {}",
         vocab_size, num_reserved, reserved, 1 << 20);
  }
  if (corpus.num_bytes() == 0) {
    fail(ErrorCode::kInvalid, "{}: has no text to train a tokenizer on", corpus.path().string());
  }
}

std::map<std::string, std::string> train_sentencepiece(const Corpus& corpus, int vocab_size,
                                                       const TrainTokenizerOptions& options) {
  constexpr int64_t kSampleBytes = int64_t{12} << 20;
  const int64_t sample_bytes = options.sample_bytes > 0 ? options.sample_bytes : kSampleBytes;
  std::vector<std::string> sentences;
  sample_corpus(corpus, sample_bytes, kSentenceBytes, options.seed,
                [&](const HeldText& excerpt) { sentences.push_back(excerpt.str()); });
  if (sentences.empty()) {
    fail(ErrorCode::kInvalid, "{}: a sample of {} bytes holds no text", corpus.path().string(),
         sample_bytes);
  }
  const std::string model = train_model(std::move(sentences), vocab_size, corpus.path().string());
  return Tokenizer::from_model(model, corpus.path().string() + ": its tokenizer")->export_files();
}

}  // namespace

namespace {

constexpr size_t kExcerptsAhead = 64;

// A part of a document from which an excerpt is taken.
struct ExcerptPlace {
  int64_t document = 0;
  int64_t begin = 0;
};

// Visits the excerpt of at most `limit` bytes at a place, at the beginning of a line where
// `at_line` says so. Returns where in the document it ends.
int64_t visit_excerpt(const Corpus& corpus, const ExcerptPlace& place, int64_t limit, bool at_line,
                      const std::function<void(HeldText)>& visit) {
  // As much as decides: an excerpt after the end of a line, and the character behind it.
  const HeldText held = corpus.part(place.document, place.begin, 2 * limit + 4);
  const auto step = static_cast<size_t>(limit);
  const size_t start = at_line ? line_start(held, 0, step) : 0;
  const size_t end = excerpt_end(held, start, step);
  const auto first = place.begin + static_cast<int64_t>(start);
  if (end > start) {
    visit(corpus.part(place.document, first, static_cast<int64_t>(end - start)));
  }
  return place.begin + static_cast<int64_t>(end);
}

}  // namespace

void sample_corpus(const Corpus& corpus, int64_t sample_bytes, int64_t excerpt_bytes, uint64_t seed,
                   const std::function<void(HeldText)>& visit) {
  const double share = static_cast<double>(sample_bytes) /
                       static_cast<double>(std::max<int64_t>(1, corpus.num_bytes()));
  const auto chosen = [&](int64_t document, int64_t position) {
    const std::array<uint64_t, 3> key{seed, static_cast<uint64_t>(document),
                                      static_cast<uint64_t>(position)};
    const uint64_t hash = hash_name({reinterpret_cast<const char*>(key.data()), sizeof(key)});
    return static_cast<double>(hash >> 11) * 0x1p-53 < share;
  };
  std::deque<ExcerptPlace> ahead;
  const auto visit_first = [&] {
    const ExcerptPlace place = ahead.front();
    ahead.pop_front();
    visit_excerpt(corpus, place, excerpt_bytes, place.begin > 0, visit);
  };
  int64_t before = 0;  // bytes of earlier documents
  for (int64_t index = 0; index < corpus.num_documents(); ++index) {
    const int64_t size = corpus.document_bytes(index);
    for (int64_t begin = 0; begin < size;) {
      if (share >= 1) {
        begin = visit_excerpt(corpus, {index, begin}, excerpt_bytes, false, visit);
        continue;
      }
      // What is not chosen is not read, so that sampling does not read the whole corpus.
      if (chosen(index, begin)) {
        const int64_t end = std::min(begin + 2 * excerpt_bytes + 4, size);
        corpus.read_ahead({before + begin, before + end});
        ahead.push_back({index, begin});
        if (ahead.size() > kExcerptsAhead) visit_first();
      }
      begin += excerpt_bytes;
    }
    before += size;
  }
  while (!ahead.empty()) visit_first();
}

void train_tokenizer(const Corpus& corpus, int vocab_size, const fs::path& out_dir,
                     const TrainTokenizerOptions& options) {
  const bool is_byte_level = options.kind == TokenizerKind::kByteLevel;
  const auto num_special = static_cast<int>(options.special.size());
  if (is_byte_level) {
    check_request(corpus, vocab_size, 256 + num_special, "256 bytes and the special tokens");
  } else {
    check_request(corpus, vocab_size, kReservedPieces, "256 bytes and 3 control tokens");
  }
  prepare_folder(out_dir, options.overwrite);  // before the work, so that it fails at once
  const auto files = is_byte_level ? train_byte_level(corpus, vocab_size, options)
                                   : train_sentencepiece(corpus, vocab_size, options);
  require_no_lost_pages();
  write_tokenizer(out_dir, files);
}

void convert_tokenizer(const fs::path& folder_or_file, const fs::path& out_dir, bool overwrite) {
  const auto files = Tokenizer::load(folder_or_file)->export_files();
  prepare_folder(out_dir, overwrite);
  write_tokenizer(out_dir, files);
}

}  // namespace skein
