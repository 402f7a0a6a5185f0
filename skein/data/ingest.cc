#include "skein/data/ingest.h"

#include <algorithm>
#include <optional>

#include "skein/base/error.h"
#include "skein/base/hash.h"
#include "skein/data/corpus_writer.h"
#include "skein/data/readers.h"

namespace skein {
namespace {

constexpr size_t kSplitBytes = size_t{1} << 20;  // documents from this size on are cut in two
constexpr size_t kMaxWarnings = 20;
constexpr int64_t kProgressBytes = int64_t{4} << 20;

// The beginning of a line, else of a character, at or before `position`; at least 1 byte in.
size_t cut_near(std::string_view text, size_t position) {
  const size_t newline = text.substr(0, position).rfind('\n');
  if (newline != std::string_view::npos && newline > position / 2) return newline + 1;
  while (position > 1 && (static_cast<uint8_t>(text[position]) & 0xc0) == 0x80) --position;
  return position;
}

// Deals documents out to the training and the validation corpus.
class Dealer {
 public:
  Dealer(const fs::path& out, const IngestOptions& options)
      : fraction_(options.validation_fraction), training_(out) {
    if (!options.validation_out.empty()) validation_.emplace(options.validation_out);
  }

  void add(std::string_view text) {
    const int64_t index = num_documents_++;
    num_bytes_ += static_cast<int64_t>(text.size());
    if (!validation_) return training_.append(text);
    if (is_held_out(index)) return validation_->append(text);
    if (text.size() >= kSplitBytes) {
      const auto kept = static_cast<double>(text.size()) * (1 - fraction_);
      return split(text, static_cast<size_t>(kept));
    }
    // The last small document waits: it is split where nothing else has been held out.
    flush_last();
    last_.assign(text);
  }

  void commit() {
    if (validation_) {
      if (validation_->num_documents() == 0 && last_.size() > 1) {
        const double wanted = fraction_ * static_cast<double>(num_bytes_);
        const auto held =
            static_cast<size_t>(std::clamp(wanted, 1.0, static_cast<double>(last_.size()) / 2));
        split(last_, last_.size() - held);
        last_.clear();
      }
      flush_last();
      validation_->commit();
    }
    training_.commit();
  }

  const CorpusWriter& training() const { return training_; }
  const CorpusWriter* validation() const { return validation_ ? &*validation_ : nullptr; }
  int64_t num_documents() const { return num_documents_; }
  int64_t num_bytes() const { return num_bytes_; }

 private:
  bool is_held_out(int64_t index) const {
    const uint64_t hash = hash_name({reinterpret_cast<const char*>(&index), sizeof(index)});
    return static_cast<double>(hash >> 11) * 0x1p-53 < fraction_;
  }
  void split(std::string_view text, size_t position) {
    const size_t cut = cut_near(text, position);
    training_.append(text.substr(0, cut));
    validation_->append(text.substr(cut));
  }
  void flush_last() {
    if (!last_.empty()) training_.append(last_);
    last_.clear();
  }

  double fraction_;
  CorpusWriter training_;
  std::optional<CorpusWriter> validation_;
  std::string last_;
  int64_t num_documents_ = 0;
  int64_t num_bytes_ = 0;
};

void check_options(const std::vector<fs::path>& inputs, const fs::path& out,
                   const IngestOptions& options) {
  if (inputs.empty()) fail(ErrorCode::kUsage, "nothing to ingest: expected files or folders");
  if (options.validation_out.empty()) return;
  if (!(options.validation_fraction > 0 && options.validation_fraction < 1)) {
    fail(ErrorCode::kUsage, "validation fraction {}: expected more than 0 and less than 1",
         options.validation_fraction);
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
       "no text in {} ({} files read, {} skipped, {} empty documents): expected text, .jsonl, "
       ".parquet or .arrow files",
       input.string(), report.num_files, report.num_skipped_files, report.num_empty_documents);
}

bool is_hidden(const fs::path& path) { return path.filename().string().starts_with('.'); }

void find_in_folder(const fs::path& folder, const std::vector<fs::path>& excluded,
                    std::vector<InputFile>& files) {
  const size_t first = files.size();
  try {
    for (auto entry = fs::recursive_directory_iterator(folder);
         entry != fs::recursive_directory_iterator(); ++entry) {
      if (is_hidden(entry->path())) {
        if (entry->is_directory()) entry.disable_recursion_pending();
        continue;
      }
      std::error_code dangling_link;
      if (!entry->is_regular_file(dangling_link)) continue;
      const fs::path canonical = fs::weakly_canonical(entry->path());
      if (std::find(excluded.begin(), excluded.end(), canonical) != excluded.end()) continue;
      files.push_back({entry->path(), false});
    }
  } catch (const fs::filesystem_error& error) {
    fail(ErrorCode::kIo, "cannot walk folder {}: {}", folder.string(), error.what());
  }
  std::sort(files.begin() + static_cast<std::ptrdiff_t>(first), files.end(),
            [](const InputFile& a, const InputFile& b) { return a.path < b.path; });
}

}  // namespace

std::vector<InputFile> find_inputs(const std::vector<fs::path>& inputs,
                                   const std::vector<fs::path>& excluded) {
  std::vector<fs::path> canonical;
  for (const fs::path& path : excluded) {
    if (!path.empty()) canonical.push_back(fs::weakly_canonical(path));
  }
  std::vector<InputFile> files;
  for (const fs::path& input : inputs) {
    if (fs::is_directory(input)) {
      find_in_folder(input, canonical, files);
    } else if (fs::exists(input)) {
      files.push_back({input, true});
    } else {
      fail(ErrorCode::kNotFound, "{}: no such file or folder", input.string());
    }
  }
  return files;
}

IngestReport ingest(const std::vector<fs::path>& inputs, const fs::path& out,
                    const IngestOptions& options,
                    const std::function<void(const IngestProgress&)>& on_progress) {
  check_options(inputs, out, options);
  const std::vector<InputFile> files = find_inputs(inputs, {out, options.validation_out});
  IngestReport report;
  ReadOptions read_options;
  read_options.max_document_bytes = options.max_document_bytes;
  if (options.skip_invalid_lines) {
    read_options.on_invalid_line = [&](const Error& error) {
      ++report.num_invalid_lines;
      add_warning(report, error.what());
    };
  }
  Dealer dealer(out, options);
  IngestProgress progress{static_cast<int64_t>(files.size())};
  const auto tell = [&](int64_t more_bytes) {
    if (!on_progress || dealer.num_bytes() - progress.num_bytes < more_bytes) return;
    progress.num_documents = dealer.num_documents();
    progress.num_bytes = dealer.num_bytes();
    on_progress(progress);
  };
  const auto visit = [&](std::string_view text) {
    if (text.empty()) {
      ++report.num_empty_documents;
      return;
    }
    dealer.add(text);
    tell(kProgressBytes);
  };
  for (const InputFile& file : files) {
    try {
      read_documents(file.path, read_options, visit);
      ++report.num_files;
    } catch (const Error& error) {
      const bool skippable = !file.named && error.code() == ErrorCode::kInvalid &&
                             input_format(file.path) == InputFormat::kText;
      if (!skippable) throw;
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
