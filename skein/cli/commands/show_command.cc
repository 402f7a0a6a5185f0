// skein data show CORPUS|CONFIG.toml … [--json]
#include <fmt/color.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <memory>

#include "skein/base/error.h"
#include "skein/base/text/log.h"
#include "skein/base/text/units.h"
#include "skein/base/text/utf8.h"
#include "skein/base/text/visible_text.h"
#include "skein/cli/commands/commands.h"
#include "skein/cli/shared/print.h"
#include "skein/data/corpus/origins.h"
#include "skein/train/explain/step_rows.h"

namespace skein {
namespace {

struct ShowOptions {
  std::string place;  // a corpus, or a configuration
  int64_t document = 0;
  int64_t byte = -1;
  std::string find;
  int64_t around = 0;
  int64_t max_bytes = 2000;
  std::string tokenizer;
  int64_t step = 0;
  int64_t lane = -1;
  std::string colour = "auto";
  bool json = false;
};

// Writes tokens so that one sees where each ends: in alternating colours, or with a bar between.
class TokenText {
 public:
  TokenText(const Tokenizer& tokenizer, bool coloured)
      : tokenizer_(tokenizer), coloured_(coloured) {}

  std::string of(std::span<const int32_t> ids) {
    std::string text;
    for (const int32_t id : ids) {
      const std::string piece = piece_of(id);
      if (coloured_) {
        text += fmt::format(
            fmt::bg(kColours[count_ % std::size(kColours)]) | fmt::fg(fmt::color::black), "{}",
            piece);
      } else {
        text += (count_ == 0 ? "" : "|") + piece;
      }
      ++count_;
      if (piece.ends_with("\\n")) text += "\n";
    }
    return text;
  }

 private:
  static constexpr fmt::color kColours[] = {fmt::color::light_blue, fmt::color::light_green,
                                            fmt::color::light_pink, fmt::color::khaki};

  std::string piece_of(int32_t id) const {
    if (id == tokenizer_.bos_id()) return "<BOS>";
    if (id == tokenizer_.eos_id()) return "<EOS>";
    // The second of two, since a space before the first is not decoded.
    const int32_t two[] = {id, id};
    const std::string text = tokenizer_.decode(two);
    const size_t before = tokenizer_.decode(std::span(two).first(1)).size();
    return visible_text(std::string_view(text).substr(before), std::numeric_limits<int32_t>::max());
  }

  const Tokenizer& tokenizer_;
  bool coloured_;
  int64_t count_ = 0;
};

bool is_coloured(const ShowOptions& options) {
  if (options.colour == "auto") return log::may_colour() && ::isatty(STDOUT_FILENO) == 1;
  return options.colour == "always";
}

// Plain text keeps its lines; what could move the cursor is shown as visible_text() does.
std::string plain_text(std::string_view text) {
  std::string shown;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    shown += visible_text(text.substr(begin, end - begin), std::numeric_limits<int32_t>::max());
    shown += '\n';
    begin = end + 1;
  }
  return shown;
}

// The beginning of a text, not cut inside a character.
std::string_view beginning_of(std::string_view text, int64_t bytes) {
  if (static_cast<int64_t>(text.size()) <= bytes) return text;
  return text.substr(0, utf8::character_start(text, static_cast<size_t>(bytes)));
}

int64_t chosen_document(const Corpus& corpus, const ShowOptions& options) {
  if (!options.find.empty()) {
    for (int64_t i = options.document; i < corpus.num_documents(); ++i) {
      const HeldText text = corpus.document(i);
      if (text.view().find(options.find) != std::string_view::npos) return i;
      corpus.forget(text);
    }
    fail(ErrorCode::kUsage, "{}: no document from {} on holds \"{}\"", corpus.path().string(),
         options.document, options.find);
  }
  if (options.byte >= 0) {
    if (options.byte < corpus.num_bytes()) return corpus.find(options.byte).document;
    fail(ErrorCode::kUsage, "{} holds {} bytes of text: expected --byte 0 to {}",
         corpus.path().string(), corpus.num_bytes(), corpus.num_bytes() - 1);
  }
  if (options.document >= corpus.num_documents()) {
    fail(ErrorCode::kUsage, "{} holds {}: expected --document 0 to {}", corpus.path().string(),
         counted(corpus.num_documents(), "document"), corpus.num_documents() - 1);
  }
  return options.document;
}

int show_corpus(const ShowOptions& options) {
  const Corpus corpus(options.place);
  CorpusOrigins origins(corpus);
  std::unique_ptr<Tokenizer> tokenizer;
  if (!options.tokenizer.empty()) {
    tokenizer = Tokenizer::load(options.tokenizer);
    warn_of(*tokenizer);
  }
  const int64_t chosen = chosen_document(corpus, options);
  const int64_t last = std::min(chosen + options.around, corpus.num_documents() - 1);
  OrderedJson documents = OrderedJson::array();
  for (int64_t i = std::max<int64_t>(0, chosen - options.around); i <= last; ++i) {
    const int64_t num_bytes = corpus.document_bytes(i);
    const HeldText held = corpus.part(i, 0, options.max_bytes + 1);
    const std::string_view text = beginning_of(held, options.max_bytes);
    const int64_t left = num_bytes - static_cast<int64_t>(text.size());
    std::vector<int32_t> ids;
    if (tokenizer != nullptr) tokenizer->encode(text, ids);
    if (options.json) {
      OrderedJson one = {{"document", i}, {"bytes", num_bytes}};
      if (const auto origin = origins.find(i)) {
        one["source"] = origin->path;
        one["record"] = origin->record;
      }
      one["text"] = std::string(text);
      if (tokenizer != nullptr) one["tokens"] = ids;
      documents.push_back(std::move(one));
      continue;
    }
    const auto origin = origins.find(i);
    print_line(stdout, "--- document {} of {}, {}{}", i, corpus.num_documents(),
               format_bytes(num_bytes),
               origin ? fmt::format(", {}:{}", origin->path, origin->record) : "");
    fmt::print("{}", tokenizer == nullptr
                         ? plain_text(text)
                         : TokenText(*tokenizer, is_coloured(options)).of(ids) + "\n");
    if (left > 0) fmt::print("… and {} more (--max-bytes)\n", format_bytes(left));
  }
  if (options.json) print_json({{"documents", std::move(documents)}});
  return kExitDone;
}

// The rows of a step, each with the documents that it is made of.
int show_step(const ShowOptions& options) {
  const Config config = load_config_of_run({.path = options.place, .overrides = {}});
  StepRows rows(config);
  rows.read(options.step, options.lane);
  const Mixture& mixture = rows.mixture();
  std::vector<CorpusOrigins> origins;
  for (size_t i = 0; i < mixture.parts().size(); ++i) origins.emplace_back(rows.corpus(i));
  for (const RowSegment& segment : rows.segments()) {
    const auto origin = origins[segment.corpus].find(segment.document);
    const std::string& source = mixture.parts()[segment.corpus].name;
    const int64_t lane = options.lane < 0 ? rows.batch().lane(segment.row) : options.lane;
    print_line(stdout, "--- lane {}, tokens {}-{}: document {}{}{}", lane, segment.begin,
               segment.end - 1, segment.document, source.empty() ? "" : " of " + source,
               origin ? fmt::format(", {}:{}", origin->path, origin->record) : "");
    const auto ids = rows.batch().row(rows.batch().tokens, segment.row);
    fmt::print("{}\n", TokenText(rows.tokenizer(), is_coloured(options))
                           .of(ids.subspan(static_cast<size_t>(segment.begin),
                                           static_cast<size_t>(segment.end - segment.begin))));
  }
  return kExitDone;
}

int show(ShowOptions options) {
  const fs::path of_run = fs::path(options.place) / "config.toml";
  if (fs::exists(of_run)) options.place = of_run.string();
  const bool is_config = fs::path(options.place).extension() == ".toml";
  if (is_config && options.step == 0) {
    fail(ErrorCode::kUsage, "{} is a configuration: expected --step N, whose rows are shown",
         options.place);
  }
  if (!is_config && options.step > 0) {
    fail(ErrorCode::kUsage, "{} is a corpus: --step belongs to a configuration", options.place);
  }
  if (is_config && options.json) {
    fail(ErrorCode::kUsage, "the rows of a step as JSON: `skein data sample {} --step {} --json`",
         options.place, options.step);
  }
  return is_config ? show_step(options) : show_corpus(options);
}

}  // namespace

void add_show_command(CLI::App& group, CommandContext& context) {
  const auto options = std::make_shared<ShowOptions>();
  CLI::App* command = group.add_subcommand(
      "show", "Show documents of a corpus, or the rows of a step, with where they came from");
  as_path(command->add_option("CORPUS|CONFIG.toml", options->place,
                              "a corpus, or a configuration or run with --step"))
      ->required();
  command->add_option("--document", options->document, "its number; the first is 0")
      ->check(whole_number_from(0));
  command->add_option("--byte", options->byte, "the document at this byte of all text")
      ->check(whole_number_from(0));
  command->add_option("--find", options->find, "the first document from --document on with this");
  command->add_option("--around", options->around, "documents before and after it as well, 0")
      ->check(whole_number_from(0));
  command->add_option("--max-bytes", options->max_bytes, "of each document, 2000")
      ->check(whole_number_from(1));
  as_path(command->add_option("--tokenizer", options->tokenizer, "show its tokens"));
  command->add_option("--step", options->step, "of a run or a configuration; the first is 1")
      ->check(whole_number_from(1));
  command->add_option("--lane", options->lane, "one row of the step")->check(whole_number_from(0));
  command->add_option("--color", options->colour, "of tokens: auto, always, never")
      ->check(CLI::IsMember({"auto", "always", "never"}).description(""));
  command->add_flag("--json", options->json, "print one JSON document");
  command->callback([&context, options] { context.run = [options] { return show(*options); }; });
}

}  // namespace skein
