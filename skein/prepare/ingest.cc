#include "skein/prepare/ingest.h"

#include <algorithm>
#include <system_error>

#include "skein/base/error.h"
#include "skein/prepare/dealer.h"
#include "skein/prepare/read/inputs.h"
#include "skein/prepare/read/readers.h"

namespace skein {
namespace {

constexpr double kValidationFraction = 0.01;
constexpr size_t kMaxWarnings = 20;
constexpr int64_t kProgressBytes = int64_t{4} << 20;

// Checks the path of an output: it must be possible to write, and must not replace a file by
// accident.
void check_output(const char* option, const fs::path& path, bool overwrite) {
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (path.empty() || !path.has_filename() || fs::is_directory(status)) {
    fail(ErrorCode::kUsage, "{} {}: is a folder: expected the name of a file, such as {}", option,
         path.empty() ? "\"\"" : path.string(), (path / "corpus.arrow").string());
  }
  if (fs::exists(status) && !overwrite) {
    fail(ErrorCode::kUsage, "{} {}: exists: name another file, or --overwrite to replace it",
         option, path.string());
  }
  if (!path.has_parent_path()) return;
  fs::create_directories(path.parent_path(), error);
  if (error) {
    fail(ErrorCode::kUsage, "{} {}: cannot make the folder {}: {}", option, path.string(),
         path.parent_path().string(), errno_text(error.value()));
  }
}

void check_options(const std::vector<fs::path>& inputs, const fs::path& out,
                   const IngestOptions& options) {
  if (inputs.empty()) fail(ErrorCode::kUsage, "nothing to ingest: expected files or folders");
  if (options.validation_out.empty()) {
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
  if (fs::weakly_canonical(options.validation_out) == fs::weakly_canonical(out)) {
    fail(ErrorCode::kUsage, "{}: named both for the corpus and for its validation part",
         out.string());
  }
}

void add_warning(IngestReport& report, const std::string& warning) {
  if (report.warnings.size() < kMaxWarnings) report.warnings.push_back(warning);
}

[[noreturn]] void fail_without_text(const fs::path& input, const IngestReport& report) {
  fail(ErrorCode::kInvalid,
       "no text in {} ({} files read, {} passed over, {} empty documents): expected text, JSON, "
       ".csv, .parquet or .arrow files{}",
       input.string(), report.num_files, report.num_skipped_files, report.num_empty_documents,
       report.warnings.empty() ? "" : "; " + report.warnings.front());
}

// Files in a folder that hold no documents are skipped; any other failure is an error.
bool may_pass_over(const InputFile& file, const Error& error, const ReadOptions& options) {
  if (file.named || error.code() != ErrorCode::kInvalid) return false;
  switch (input_format(file.path, options.as_text)) {
    case InputFormat::kText:
    case InputFormat::kJson:
    case InputFormat::kCsv:
    case InputFormat::kTsv:
    case InputFormat::kPacked:
      return true;
    default:
      return false;
  }
}

}  // namespace

IngestReport ingest(const std::vector<fs::path>& inputs, const fs::path& out,
                    const IngestOptions& options,
                    const std::function<void(const IngestProgress&)>& on_progress) {
  check_options(inputs, out, options);
  FoundInputs found = find_inputs(inputs, {out, options.validation_out});
  const std::vector<InputFile>& files = found.files;
  for (const InputFile& file : files) {
    std::error_code ignored;
    if (fs::equivalent(file.path, out, ignored) ||
        fs::equivalent(file.path, options.validation_out, ignored)) {
      fail(ErrorCode::kUsage, "{}: an input, and what is to be written as well",
           file.path.string());
    }
  }
  check_output("--out", out, options.overwrite);
  if (!options.validation_out.empty()) {
    check_output("--validation-out", options.validation_out, options.overwrite);
  }
  IngestReport report;
  report.passed_over = std::move(found.passed_over);
  report.notes = std::move(found.notes);
  ReadOptions read_options;
  read_options.max_document_bytes = options.max_document_bytes;
  read_options.text_column = options.text_column;
  read_options.as_text = options.as_text;
  if (options.skip_invalid_lines) {
    read_options.on_invalid_line = [&](const Error& error) {
      ++report.num_invalid_lines;
      add_warning(report, error.what());
    };
  }
  Dealer dealer(out, options.validation_out,
                options.validation_fraction.value_or(kValidationFraction));
  IngestProgress progress{static_cast<int64_t>(files.size())};
  const auto tell = [&](int64_t more_bytes) {
    if (!on_progress || dealer.num_bytes() - progress.num_bytes < more_bytes) return;
    progress.num_documents = dealer.num_documents();
    progress.num_bytes = dealer.num_bytes();
    on_progress(progress);
  };
  int64_t num_of_file = 0;
  const auto visit = [&](std::string_view text) {
    ++num_of_file;
    if (text.empty()) {
      ++report.num_empty_documents;
      return;
    }
    dealer.add(text);
    tell(kProgressBytes);
  };
  for (const InputFile& file : files) {
    num_of_file = 0;
    try {
      read_documents(file.path, read_options, visit);
      ++report.num_files;
    } catch (const Error& error) {
      if (num_of_file > 0 || !may_pass_over(file, error, read_options)) throw;
      ++report.num_skipped_files;
      add_warning(report, error.what());
    }
    ++progress.num_files_done;
    tell(0);
  }
  if (dealer.num_documents() == 0) fail_without_text(inputs.front(), report);
  dealer.commit();
  report.num_documents = dealer.training().num_documents();
  report.num_bytes = dealer.training().num_bytes();
  if (const CorpusWriter* validation = dealer.validation()) {
    report.num_validation_documents = validation->num_documents();
    report.num_validation_bytes = validation->num_bytes();
  }
  return report;
}

}  // namespace skein
