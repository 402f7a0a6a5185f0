#include "skein/prepare/ingest.h"

#include <algorithm>
#include <set>
#include <system_error>

#include "skein/base/error.h"
#include "skein/base/numbers/hash.h"
#include "skein/base/text/json_text.h"
#include "skein/chat/chat_renderer.h"
#include "skein/data/corpus/corpus_sources.h"
#include "skein/prepare/dealer.h"
#include "skein/prepare/invalid_lines.h"
#include "skein/prepare/outputs.h"
#include "skein/prepare/pieces.h"
#include "skein/prepare/read/inputs/inputs.h"

namespace skein {
namespace {

constexpr double kValidationFraction = 0.01;

// No file is written twice.
void check_distinct(const Place& out, const IngestOptions& options) {
  std::vector<Place> written = {out, out.with_suffix(kSourcesSuffix)};
  if (const Place& validation = options.validation_out; validation.is_named()) {
    written.insert(written.end(), {validation, validation.with_suffix(kSourcesSuffix)});
  }
  written.insert(written.end(), options.also_written.begin(), options.also_written.end());
  std::set<fs::path> seen;
  for (const Place& place : written) {
    const fs::path& path = place.path();
    if (seen.insert(place.is_object() ? path : fs::weakly_canonical(path)).second) continue;
    fail(ErrorCode::kUsage,
         "{}: would be written twice, as two of the corpora, the .sources beside each and the "
         "report: expected a name for each",
         path.string());
  }
}

void check_options(const Place& out, const IngestOptions& options) {
  check_distinct(out, options);
  check_reading(read_options(options));
  if (!options.validation_out.is_named()) {
    if (!options.validation_fraction) return;
    fail(ErrorCode::kUsage,
         "--validation-fraction {}: nothing is held out without --validation-out FILE",
         *options.validation_fraction);
  }
  const double fraction = options.validation_fraction.value_or(kValidationFraction);
  if (!(fraction > 0 && fraction < 1)) {
    fail(ErrorCode::kUsage, "validation fraction {}: expected more than 0 and less than 1",
         fraction);
  }
}

// "a.jsonl", "a.jsonl and 7 others".
std::string names_of(const std::vector<InputFile>& inputs) {
  if (inputs.empty()) return "the inputs";
  const std::string first = inputs.front().path.string();
  return inputs.size() == 1 ? first : fmt::format("{} and {} others", first, inputs.size() - 1);
}

[[noreturn]] void fail_without_text(const std::string& inputs, const IngestReport& report,
                                    const IngestOptions& options) {
  fail(ErrorCode::kInvalid,
       "no text in {} ({} files read, {} passed over, {} {} documents{}): expected {}{}", inputs,
       report.num_files, report.num_skipped_files, report.num_left_out, options.step.left_out,
       report.num_invalid_utf8 == 0
           ? ""
           : fmt::format(", {} that are not UTF-8 skipped", report.num_invalid_utf8),
       report.num_left_out > 0 ? "some that stay" : "text, JSON, .csv, .parquet or .arrow files",
       report.warnings.empty() ? "" : "; " + report.warnings.front());
}

class CopyWorker : public PieceWorker {
 public:
  void add(const InputDocument& document, PieceOutput& out) override {
    if (!document.text.empty()) out.append(document.text, document.origin, document.spans);
  }
};

PiecesOptions pieces_options(const fs::path& out, const IngestOptions& options) {
  PiecesOptions pieces;
  pieces.work_folder = work_folder_of(out);
  pieces.num_threads = options.num_threads;
  pieces.read = read_options(options);
  pieces.skip_invalid_lines = options.skip_invalid_lines && options.max_invalid_lines > 0;
  pieces.worker = options.step.key;
  pieces.joins_texts = !options.validation_out.is_named();  // otherwise they go to two corpora
  return pieces;
}

struct IngestOutputs {
  IngestOutputs(const Place& out, const IngestOptions& options)
      : training(output_of(out, options.work)),
        validation(output_of(options.validation_out, options.work)) {
    if (validation.named.is_named()) all.push_back(validation);
    all.push_back(training);
  }

  // Those that were not made of this before.
  void check(const std::string& made_from, bool overwrite) const {
    const auto check_one = [&](const char* option, const Output& output) {
      if (overwrite || !is_made_from(output.named, made_from)) {
        check_output(option, output, overwrite);
      }
    };
    check_one("--out", training);
    if (validation.named.is_named()) check_one("--validation-out", validation);
  }

  Output training, validation;
  std::vector<Output> all;
};

// Of all that the bytes of the outputs follow from.
std::string fingerprint(const std::vector<InputFile>& files, const IngestOptions& options) {
  Json all = {text_options(options), options.validation_out.text(),
              options.validation_fraction.value_or(kValidationFraction)};
  for (const InputFile& file : files) {
    all.push_back({file.path.string(), file.named, file.num_bytes, file.changed_ns});
  }
  const std::string text = json_text(all);
  return xxh3_128_hex(std::as_bytes(std::span(text)));
}

// Whether the outputs are there, made of these inputs.
bool is_finished(const IngestOutputs& outputs, const std::string& made_from, bool overwrites) {
  const auto is_there = [&](const Output& output) { return is_made_from(output.named, made_from); };
  if (overwrites || !std::all_of(outputs.all.begin(), outputs.all.end(), is_there)) return false;
  std::error_code error;
  const fs::path work = work_folder_of(outputs.training.made);
  if (fs::exists(work, error)) Pieces::remove_all(work);
  remove_sent(outputs.all);
  return true;
}

void add_total(const PieceReport& total, IngestReport& report) {
  report.num_files = total.num_files;
  report.num_skipped_files = total.num_skipped_files;
  report.num_invalid_lines = total.num_invalid_lines;
  report.num_invalid_utf8 = total.num_invalid_utf8;
  report.num_left_out = total.num_documents_read - total.num_documents;
  report.first_empty = total.first_empty;
  report.num_documents = total.num_documents;
  report.num_bytes = total.num_bytes;
  report.warnings = total.warnings;
  for (const std::string& line : found_lines(total)) report.notes.push_back(line);
}

// Writes the corpora.
void deal(const Pieces& pieces, const IngestOutputs& outputs, const std::string& made_from,
          const IngestOptions& options, IngestReport& report) {
  Dealer dealer(outputs.training.made, outputs.validation.made, made_from,
                options.validation_fraction.value_or(kValidationFraction), options.shard_of,
                options.chat != nullptr && options.chat->options().finds_spans);
  for (int64_t i = 0; i < pieces.num_pieces(); ++i) {
    dealer.begin_file(pieces.text_file(i));
    pieces.read(i, [&](const PieceDocument& document) { dealer.add(document); });
  }
  dealer.commit();
  report.num_documents = dealer.training().num_documents();
  report.num_bytes = dealer.training().num_bytes();
  if (const CorpusWriter* validation = dealer.validation()) {
    report.num_validation_documents = validation->num_documents();
    report.num_validation_bytes = validation->num_bytes();
  }
}

void make(std::vector<InputFile> files, const IngestOutputs& outputs, const std::string& made_from,
          const IngestOptions& options,
          const std::function<void(const PiecesProgress&)>& on_progress, IngestReport& report) {
  const std::string names = names_of(files);
  Pieces pieces(std::move(files), pieces_options(outputs.training.made, options));
  report.restart = pieces.notes();
  try {
    pieces.make(options.step.make_worker, [&](const PiecesProgress& progress) {
      if (on_progress) on_progress(progress);
      check_invalid_lines(progress, options.max_invalid_lines);
    });
    add_total(pieces.total(), report);
    for (int64_t i = 0; i < pieces.num_pieces(); ++i) {
      report.counters.push_back(pieces.report(i).counters);
    }
    check_invalid_lines(pieces.total(), options.max_invalid_lines);
    if (options.on_read) options.on_read(outputs.training.named.path(), report);
    if (report.num_documents == 0 && options.shard_of.empty()) {
      pieces.remove();  // there is nothing to go on with
      fail_without_text(names, report, options);
    }
    deal(pieces, outputs, made_from, options, report);
  } catch (const Error& error) {
    throw Error(error.code(), error.what() + pieces.kept());
  }
  pieces.remove();
}

IngestReport ingest_found(FoundInputs found, const IngestOutputs& outputs,
                          const IngestOptions& options,
                          const std::function<void(const PiecesProgress&)>& on_progress) {
  // Of a shard all inputs were looked at.
  if (options.shard_of.empty()) check_separator(read_options(options), found.files);
  std::vector<Place> written = options.also_written;
  written.insert(written.end(), {outputs.training.named, outputs.validation.named});
  check_not_outputs(found.files, written);
  if (options.shard_of.empty()) check_shards_of_inputs(found.files);
  IngestReport report;
  report.passed_over = std::move(found.passed_over);
  report.notes = std::move(found.notes);
  const std::string made_from = fingerprint(found.files, options);
  report.was_finished = is_finished(outputs, made_from, options.overwrite);
  if (report.was_finished) return report;
  outputs.check(made_from, options.overwrite);
  report.was_made = wait_to_be_sent(outputs.all, made_from);
  if (report.was_made) return send(outputs.all, options.on_sent), report;
  make(std::move(found.files), outputs, made_from, options, on_progress, report);
  send(outputs.all, options.on_sent);
  return report;
}

}  // namespace

ReadOptions read_options(const IngestOptions& options) {
  ReadOptions read;
  read.max_document_bytes = options.max_document_bytes;
  read.text_column = options.text_column;
  read.as_text = options.as_text;
  read.format = options.format;
  read.document_separator = options.document_separator;
  read.chat = options.chat;
  read.utf8.invalid = options.invalid_utf8;
  read.bytes.max_expansion = options.max_expansion;
  return read;
}

IngestStep copy_documents() {
  return {[] { return std::make_unique<CopyWorker>(); }, "copy"};
}

Json text_options(const IngestOptions& options) {
  return {options.step.key, reading_key(read_options(options), options.skip_invalid_lines)};
}

IngestReport ingest(const std::vector<fs::path>& inputs, const Place& out,
                    const IngestOptions& options,
                    const std::function<void(const PiecesProgress&)>& on_progress) {
  if (inputs.empty()) fail(ErrorCode::kUsage, "nothing to ingest: expected files or folders");
  check_options(out, options);
  const IngestOutputs outputs(out, options);
  std::vector<fs::path> excluded = {out.path(), options.validation_out.path(),
                                    outputs.training.made, outputs.validation.made,
                                    work_folder_of(outputs.training.made)};
  for (const Place& place : options.also_written) excluded.push_back(place.path());
  return ingest_found(find_inputs(inputs, excluded), outputs, options, on_progress);
}

IngestReport ingest(FoundInputs found, const Place& out, const IngestOptions& options,
                    const std::function<void(const PiecesProgress&)>& on_progress) {
  check_options(out, options);
  return ingest_found(std::move(found), IngestOutputs(out, options), options, on_progress);
}

}  // namespace skein
