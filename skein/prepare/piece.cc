#include "skein/prepare/piece.h"

#include <algorithm>
#include <cstring>
#include <system_error>

#include "skein/base/error.h"
#include "skein/base/files/open_file.h"
#include "skein/base/text/json_text.h"

namespace skein {
namespace {

constexpr size_t kResidentBytes = size_t{8} << 20;  // of mapped text, a thread
constexpr int64_t kLookBytes = int64_t{8} << 20;    // of text, between two looks at turn and disk

fs::path with_ending(fs::path stem, const char* ending) { return stem += ending; }
fs::path text_of(const fs::path& stem) { return with_ending(stem, ".text"); }
fs::path rows_of(const fs::path& stem) { return with_ending(stem, ".rows"); }
fs::path spans_of(const fs::path& stem) { return with_ending(stem, ".spans"); }
fs::path record_of(const fs::path& stem) { return with_ending(stem, ".json"); }

// Whether the file has these bytes, to its end unless it is shared.
bool has_bytes(const fs::path& path, int64_t begin, int64_t num_bytes, bool to_end,
               const std::string& hash) {
  const MappedFile file(path);
  const auto size = static_cast<int64_t>(file.bytes().size());
  if (begin < 0 || num_bytes < 0 || num_bytes > size - begin) return false;
  if (to_end && begin + num_bytes != size) return false;
  return hash_of(file, begin, num_bytes) == hash;
}

Json to_json(const PieceReport& report) {
  Json json = {{"files", report.num_files},
               {"skipped_files", report.num_skipped_files},
               {"invalid_lines", report.num_invalid_lines},
               {"invalid_utf8", report.num_invalid_utf8},
               {"documents_read", report.num_documents_read},
               {"bytes_read", report.num_bytes_read},
               {"documents", report.num_documents},
               {"bytes", report.num_bytes},
               {"sources", report.sources},
               {"warnings", report.warnings},
               {"found", report.found},
               {"first_text", report.first_text},
               {"first_table", report.first_table},
               {"first_empty", report.first_empty},
               {"counters", report.counters},
               {"joined_begin", report.joined_begin}};
  if (report.has_spans) json["has_spans"] = true;
  return json;
}

PieceReport report_from(const Json& json) {
  PieceReport report;
  json.at("files").get_to(report.num_files);
  json.at("skipped_files").get_to(report.num_skipped_files);
  json.at("invalid_lines").get_to(report.num_invalid_lines);
  json.at("invalid_utf8").get_to(report.num_invalid_utf8);
  json.at("documents_read").get_to(report.num_documents_read);
  json.at("bytes_read").get_to(report.num_bytes_read);
  json.at("documents").get_to(report.num_documents);
  json.at("bytes").get_to(report.num_bytes);
  json.at("sources").get_to(report.sources);
  json.at("warnings").get_to(report.warnings);
  json.at("found").get_to(report.found);
  json.at("first_text").get_to(report.first_text);
  json.at("first_table").get_to(report.first_table);
  report.first_empty = json.value("first_empty", "");
  report.counters = json.at("counters");
  json.at("joined_begin").get_to(report.joined_begin);
  report.has_spans = json.contains("has_spans");
  return report;
}

[[noreturn]] void fail_damaged(const fs::path& stem) {
  fail(ErrorCode::kCorrupt,
       "{}.*: damaged, its parts disagree: remove the folder {} and begin again", stem.string(),
       stem.parent_path().string());
}

// Replaces the record without waiting for the disk: it has hashes, and is JSON or not.
void write_record(const fs::path& stem, const Json& record) {
  PieceFile file(record_of(stem));
  // Names of files need not be UTF-8.
  file.append(json_text(record));
  file.finish();
}

void move_text(const fs::path& stem, PieceReport& report, int64_t joined_begin) {
  Json record = read_json(record_of(stem).string());
  report.joined_begin = joined_begin;
  record["report"] = to_json(report);
  write_record(stem, record);
}

// STEM.spans, document by document.
class SpanReader {
 public:
  explicit SpanReader(const fs::path& path) : path_(path), file_(path) {}

  // Of the next document, which has so many bytes.
  std::span<const ByteRange> next(int64_t num_bytes) {
    const std::span<const std::byte> rest = file_.bytes().subspan(at_);
    int64_t count = -1;
    if (rest.size() >= sizeof(count)) std::memcpy(&count, rest.data(), sizeof(count));
    const auto most = static_cast<int64_t>((rest.size() - sizeof(count)) / sizeof(ByteRange));
    if (count < 0 || count > most) fail_damaged(path_);
    const auto* spans = reinterpret_cast<const ByteRange*>(rest.data() + sizeof(count));
    at_ += sizeof(count) + static_cast<size_t>(count) * sizeof(ByteRange);
    int64_t end = 0;
    for (int64_t i = 0; i < count; ++i) {
      if (spans[i].begin < end || spans[i].end < spans[i].begin) fail_damaged(path_);
      end = spans[i].end;
    }
    if (end > num_bytes) fail_damaged(path_);
    return {spans, static_cast<size_t>(count)};
  }

 private:
  fs::path path_;
  MappedFile file_;
  size_t at_ = 0;
};

}  // namespace

fs::path joined_text(const fs::path& work_folder) { return work_folder / "joined.text"; }

fs::path piece_text(const fs::path& stem, const PieceReport& report) {
  return report.joined_begin < 0 ? text_of(stem) : joined_text(stem.parent_path());
}

std::vector<std::string> found_lines(const PieceReport& report) {
  std::vector<std::string> lines;
  for (const auto& [what, files] : report.found) {
    const auto& [num_files, first] = files;
    const std::string others =
        num_files > 1 ? fmt::format(" and {} other{}", num_files - 1, num_files > 2 ? "s" : "")
                      : "";
    lines.push_back(fmt::format("{}{}: {}", first, others, what));
  }
  if (!report.first_text.empty() && !report.first_table.empty()) {
    lines.push_back(
        fmt::format("{}: a plain text file beside tables or JSON ({}); each such file is one "
                    "document of the corpus. If they are not training text, name only the files "
                    "or folders that are",
                    report.first_text, report.first_table));
  }
  return lines;
}

PieceOutput::PieceOutput(const fs::path& stem, JoinedTexts* joined, size_t piece, bool has_spans)
    : stem_(stem), joined_(joined), piece_(piece), text_(text_of(stem)), rows_(rows_of(stem)) {
  if (has_spans) spans_.emplace(spans_of(stem));
  join_at_turn();
}

void PieceOutput::append(std::string_view text, const Origin& origin,
                         std::span<const ByteRange> spans) {
  const PieceRow row{static_cast<int64_t>(text.size()), source_index(origin.source), origin.record};
  text_.append(text);
  rows_.append({reinterpret_cast<const char*>(&row), sizeof(row)});
  if (spans_) {
    const auto count = static_cast<int64_t>(spans.size());
    spans_->append({reinterpret_cast<const char*>(&count), sizeof(count)});
    spans_->append({reinterpret_cast<const char*>(spans.data()), spans.size_bytes()});
  }
  ++num_documents_;
  if (joined_ == nullptr || text_.num_bytes() < next_look_) return;
  join_at_turn();
  if (joined_begin_ >= 0) write_behind();
  next_look_ = text_.num_bytes() + kLookBytes;
}

void PieceOutput::join_at_turn() {
  if (joined_ == nullptr || joined_begin_ >= 0) return;
  const std::optional<int64_t> begin = joined_->turn(piece_);
  if (!begin) return;
  text_.go_on_in(Spool::inside(joined_->path(), *begin));
  joined_begin_ = *begin;
}

void PieceOutput::write_behind() {
  text_.flush();
  joined_->write_behind(joined_begin_ + text_.num_bytes());
}

int64_t PieceOutput::source_index(std::string_view source) {
  if (last_source_ < 0 || sources_[static_cast<size_t>(last_source_)] != source) {
    const auto [found, is_new] =
        source_indices_.try_emplace(std::string(source), static_cast<int64_t>(sources_.size()));
    if (is_new) sources_.emplace_back(source);
    last_source_ = found->second;
  }
  return last_source_;
}

void PieceOutput::finish(const std::string& key, PieceReport& report) {
  join_at_turn();
  const std::string text_hash = text_.finish(), rows_hash = rows_.finish();
  report.num_documents = num_documents_;
  report.num_bytes = text_.num_bytes();
  report.sources = std::move(sources_);
  report.joined_begin = joined_begin_;
  report.has_spans = spans_.has_value();
  Json record = {{"key", key}, {"text_xxh3", text_hash}, {"rows_xxh3", rows_hash}};
  if (spans_) record["spans_xxh3"] = spans_->finish();
  record["report"] = to_json(report);
  write_record(stem_, record);
}

std::optional<PieceReport> find_piece(const fs::path& stem, const std::string& key) {
  std::error_code error;
  if (!fs::exists(record_of(stem), error)) return std::nullopt;
  try {
    const Json record = read_json(record_of(stem).string());
    if (record.at("key").get<std::string>() != key) return std::nullopt;
    PieceReport report = report_from(record.at("report"));
    const bool is_joined = report.joined_begin >= 0;
    const int64_t rows_bytes = report.num_documents * static_cast<int64_t>(sizeof(PieceRow));
    if (!has_bytes(piece_text(stem, report), is_joined ? report.joined_begin : 0, report.num_bytes,
                   !is_joined, record.at("text_xxh3").get<std::string>()) ||
        !has_bytes(rows_of(stem), 0, rows_bytes, true, record.at("rows_xxh3").get<std::string>())) {
      return std::nullopt;
    }
    if (report.has_spans &&
        hash_of_file(spans_of(stem)) != record.at("spans_xxh3").get<std::string>()) {
      return std::nullopt;
    }
    return report;
  } catch (const std::exception&) {  // whatever it is, it is no finished piece
    return std::nullopt;
  }
}

void join_piece(const fs::path& stem, PieceReport& report, JoinedTexts& joined, int64_t begin) {
  const fs::path text = text_of(stem);
  joined.copy({open_to_read(text).get(), 0, report.num_bytes, text}, begin);
  move_text(stem, report, begin);
  fs::remove(text);
}

void part_piece(const fs::path& stem, PieceReport& report) {
  const fs::path joined = piece_text(stem, report);
  Spool to = Spool::named(text_of(stem));
  copy_bytes({open_to_read(joined).get(), report.joined_begin, report.num_bytes, joined}, to.fd(),
             to.path());
  move_text(stem, report, -1);
}

void read_piece(const fs::path& stem, const PieceReport& report,
                const std::function<void(const PieceDocument&)>& visit) {
  const MappedFile text(piece_text(stem, report)), rows(rows_of(stem));
  std::optional<SpanReader> spans;
  if (report.has_spans) spans.emplace(spans_of(stem));
  const auto* row = reinterpret_cast<const PieceRow*>(rows.bytes().data());
  const size_t num_rows = rows.bytes().size() / sizeof(PieceRow);
  auto begin = static_cast<size_t>(std::max<int64_t>(0, report.joined_begin));
  const size_t end = begin + static_cast<size_t>(report.num_bytes);
  if (end > text.text().size()) fail_damaged(stem);
  size_t forgotten = begin;
  for (size_t i = 0; i < num_rows; ++i, ++row) {
    const auto num_bytes = static_cast<size_t>(row->num_bytes);
    if (num_bytes > end - begin || static_cast<size_t>(row->source) >= report.sources.size()) {
      fail_damaged(stem);
    }
    visit({text.text().substr(begin, num_bytes),
           static_cast<int64_t>(begin),
           {report.sources[static_cast<size_t>(row->source)], row->record},
           spans ? spans->next(row->num_bytes) : std::span<const ByteRange>()});
    begin += num_bytes;
    if (begin - forgotten > kResidentBytes) {
      text.forget(text.bytes().subspan(forgotten, begin - forgotten));
      rows.forget(rows.bytes().first((i + 1) * sizeof(PieceRow)));
      forgotten = begin;
    }
  }
  if (begin != end) fail_damaged(stem);
}

}  // namespace skein
