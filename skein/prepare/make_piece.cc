#include "skein/prepare/make_piece.h"

#include <utility>

#include "skein/base/error.h"
#include "skein/base/visible_text.h"
#include "skein/data/corpus_sources.h"
#include "skein/objects/object_url.h"
#include "skein/prepare/read/html.h"

namespace skein {
namespace {

constexpr size_t kMaxWarnings = 20;

constexpr char kHtml[] =
    "HTML, taken as text with its tags, scripts and menus: extract the text first, such as with "
    "`trafilatura --input-dir PAGES --output-dir TEXTS` (--as-text takes it as it is, without this "
    "line)";

// What many collections of texts in one file have between them.
constexpr std::string_view kEndOfText = "<|endoftext|>";
constexpr char kSeveralTexts[] =
    "one document that spells <|endoftext|>: --document-separator '<|endoftext|>' makes a document "
    "of each text between";

struct GivenUp {};

// Files in a folder that hold no documents are passed over; any other failure is an error.
bool may_pass_over(const InputFile& file, const Error& error, InputFormat format, bool by_content) {
  if (file.named || error.code() != ErrorCode::kInvalid) return false;
  if (by_content) return true;
  switch (format) {
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

// As .sources has it: to be found from everywhere, and UTF-8.
std::string source_name(const fs::path& path) {
  const bool is_object = is_object_url(path);
  return escape_invalid_utf8((is_object ? path : fs::absolute(path).lexically_normal()).string());
}

Origin origin_of(const std::optional<CorpusSources>& sources, const std::string& file,
                 int64_t record) {
  if (!sources || record > sources->num_documents()) return {file, record};  // refused at the end
  const SourceRecord source = sources->find(record - 1);
  return {source.path, source.record};
}

}  // namespace

void add_warning(PieceReport& report, const std::string& warning) {
  if (report.warnings.size() < kMaxWarnings) report.warnings.push_back(warning);
}

void add_found(PieceReport& report, const std::string& what, int64_t num_files,
               const std::string& first) {
  auto& files = report.found[what];
  if (files.first == 0) files.second = first;
  files.first += num_files;
}

std::optional<PieceReport> make_piece(const PieceTask& task, const PiecesOptions& options,
                                      PieceWorker& worker, SharedProgress& progress,
                                      const std::function<bool()>& go_on) {
  PieceReport report;
  ReadOptions read = options.read;
  read.scratch = options.work_folder;
  if (options.skip_invalid_lines) {
    read.on_invalid_line = [&](const Error& error) {
      ++report.num_invalid_lines;
      ++progress.num_invalid_lines;
      add_warning(report, error.what());
    };
  }
  read.utf8.on_invalid = [&] { ++report.num_invalid_utf8; };
  int64_t num_told = 0;  // bytes of the file
  read.bytes.on_read = [&](int64_t num_bytes) {
    num_told += num_bytes;
    progress.num_input_bytes_done += num_bytes;
  };
  PieceOutput out(task.stem, task.joined, task.piece);
  for (size_t i = 0; i < task.inputs.size(); ++i) {
    const InputFile& file = task.inputs[i];
    const std::string source = source_name(file.path);
    std::optional<CorpusSources> sources;
    InputFormat format = InputFormat::kUnknown;
    std::string taken_for, column;
    read.on_format = [&](InputFormat found, const std::string& by_content) {
      format = found;
      taken_for = by_content;
      // Documents of a corpus keep the origins that its .sources gives.
      if (format != InputFormat::kArrow) return;
      if (auto beside = CorpusSources::beside(file.path)) sources.emplace(std::move(*beside));
    };
    read.on_text_column = [&](const std::string& found) { column = found; };
    const int64_t num_before = report.num_documents_read;
    const int64_t bytes_before = report.num_bytes_read, invalid_before = report.num_invalid_utf8;
    int64_t num_rows = 0;
    bool has_html = false, spells_end = false;
    try {
      read_documents(file.path, read, [&](std::string_view text, int64_t record) {
        if (!go_on()) throw GivenUp();
        const auto num_bytes = static_cast<int64_t>(text.size());
        num_rows = record;
        has_html = has_html || is_html(text);
        spells_end =
            spells_end || (format == InputFormat::kText && read.document_separator.empty() &&
                           text.find(kEndOfText) != text.npos);
        ++report.num_documents_read;
        report.num_bytes_read += num_bytes;
        progress.num_documents.fetch_add(1, std::memory_order_relaxed);
        progress.num_bytes.fetch_add(num_bytes, std::memory_order_relaxed);
        worker.add({text, origin_of(sources, source, record), task.first_input + i}, out);
      });
      const bool is_as_written = report.num_invalid_utf8 == invalid_before;
      if (sources && (is_as_written || num_rows > sources->num_documents())) {
        sources->check_is_of(file.path, num_rows, report.num_bytes_read - bytes_before);
      }
      ++report.num_files;
      if (!taken_for.empty()) {
        add_found(
            report,
            fmt::format("taken for {} by the first bytes (--format names another)", taken_for), 1,
            source);
      }
      if (spells_end) add_found(report, kSeveralTexts, 1, source);
      // Who asks for text as it stands knows.
      if (has_html && !read.as_text && read.format != InputFormat::kText)
        add_found(report, kHtml, 1, source);
      if (!column.empty()) {
        add_found(report,
                  fmt::format("has no `{}`: its documents are `{}` (--text-column names another)",
                              kTextColumns[0], column),
                  1, source);
      }
    } catch (const GivenUp&) {
      return std::nullopt;
    } catch (const Error& error) {
      if (report.num_documents_read > num_before ||
          !may_pass_over(file, error, format, !taken_for.empty())) {
        if (taken_for.empty()) throw;
        throw Error(error.code(), fmt::format("{} (by its first bytes {}; --format names another)",
                                              error.what(), taken_for));
      }
      ++report.num_skipped_files;
      add_warning(report, error.what());
    }
    ++progress.num_files_done;
    progress.num_input_bytes_done += file.num_bytes - std::exchange(num_told, 0);
  }
  report.counters = worker.take_counters();
  out.finish(task.key, report);
  return report;
}

}  // namespace skein
