#include "skein/prepare/piece.h"

#include <algorithm>
#include <system_error>

#include "skein/base/error.h"

namespace skein {
namespace {

constexpr size_t kResidentBytes = size_t{8} << 20;  // of mapped text, a thread

fs::path with_ending(fs::path stem, const char* ending) { return stem += ending; }
fs::path rows_of(const fs::path& stem) { return with_ending(stem, ".rows"); }
fs::path record_of(const fs::path& stem) { return with_ending(stem, ".json"); }

Json to_json(const PieceReport& report) {
  return {{"files", report.num_files},
          {"skipped_files", report.num_skipped_files},
          {"invalid_lines", report.num_invalid_lines},
          {"invalid_utf8", report.num_invalid_utf8},
          {"documents_read", report.num_documents_read},
          {"bytes_read", report.num_bytes_read},
          {"documents", report.num_documents},
          {"bytes", report.num_bytes},
          {"sources", report.sources},
          {"warnings", report.warnings},
          {"counters", report.counters}};
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
  report.counters = json.at("counters");
  return report;
}

[[noreturn]] void fail_damaged(const fs::path& stem) {
  fail(ErrorCode::kCorrupt,
       "{}.*: damaged, its parts disagree: remove the folder {} and begin anew", stem.string(),
       stem.parent_path().string());
}

}  // namespace

fs::path piece_text(const fs::path& stem) { return with_ending(stem, ".text"); }

PieceOutput::PieceOutput(const fs::path& stem)
    : stem_(stem), text_(piece_text(stem)), rows_(rows_of(stem)) {}

void PieceOutput::append(std::string_view text, const Origin& origin) {
  const PieceRow row{static_cast<int64_t>(text.size()), source_index(origin.source), origin.record};
  text_.append(text);
  rows_.append({reinterpret_cast<const char*>(&row), sizeof(row)});
  ++num_documents_;
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
  const std::string text_hash = text_.finish(), rows_hash = rows_.finish();
  report.num_documents = num_documents_;
  report.num_bytes = text_.num_bytes();
  report.sources = std::move(sources_);
  // Names of files need not be UTF-8.
  write_file_atomic(record_of(stem_), Json{{"key", key},
                                           {"text_xxh3", text_hash},
                                           {"rows_xxh3", rows_hash},
                                           {"report", to_json(report)}}
                                          .dump(-1, ' ', false, Json::error_handler_t::replace));
}

std::optional<PieceReport> find_piece(const fs::path& stem, const std::string& key) {
  std::error_code error;
  if (!fs::exists(record_of(stem), error)) return std::nullopt;
  try {
    const Json record = read_json(record_of(stem).string());
    if (record.at("key").get<std::string>() != key) return std::nullopt;
    PieceReport report = report_from(record.at("report"));
    const auto rows_bytes = static_cast<uint64_t>(report.num_documents) * sizeof(PieceRow);
    if (fs::file_size(piece_text(stem)) != static_cast<uint64_t>(report.num_bytes) ||
        fs::file_size(rows_of(stem)) != rows_bytes ||
        hash_of_file(piece_text(stem)) != record.at("text_xxh3").get<std::string>() ||
        hash_of_file(rows_of(stem)) != record.at("rows_xxh3").get<std::string>()) {
      return std::nullopt;
    }
    return report;
  } catch (const std::exception&) {  // whatever it is, it is no finished piece
    return std::nullopt;
  }
}

void read_piece(const fs::path& stem, const PieceReport& report,
                const std::function<void(const PieceDocument&)>& visit) {
  const MappedFile text(piece_text(stem)), rows(rows_of(stem));
  const auto* row = reinterpret_cast<const PieceRow*>(rows.bytes().data());
  const size_t num_rows = rows.bytes().size() / sizeof(PieceRow);
  size_t begin = 0, forgotten = 0;
  for (size_t i = 0; i < num_rows; ++i, ++row) {
    const auto num_bytes = static_cast<size_t>(row->num_bytes);
    if (num_bytes > text.text().size() - begin ||
        static_cast<size_t>(row->source) >= report.sources.size()) {
      fail_damaged(stem);
    }
    visit({text.text().substr(begin, num_bytes),
           static_cast<int64_t>(begin),
           {report.sources[static_cast<size_t>(row->source)], row->record}});
    begin += num_bytes;
    if (begin - forgotten > kResidentBytes) {
      text.forget(text.bytes().subspan(forgotten, begin - forgotten));
      rows.forget(rows.bytes().first((i + 1) * sizeof(PieceRow)));
      forgotten = begin;
    }
  }
  if (begin != text.text().size()) fail_damaged(stem);
}

}  // namespace skein
