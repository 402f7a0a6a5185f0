#include "skein/prepare/make_piece.h"

#include <utility>

#include "skein/base/error.h"
#include "skein/base/text/visible_text.h"
#include "skein/chat/chat_renderer.h"
#include "skein/data/corpus/corpus_sources.h"
#include "skein/objects/url.h"
#include "skein/prepare/read/html.h"

namespace skein {
namespace {

constexpr size_t kMaxWarnings = 20;

// Members of archives that a piece names in its list of sources; those behind them have the archive
// and their number for an origin, so that an archive of millions takes no memory for their names.
constexpr int64_t kNamedMembers = int64_t{1} << 17;
constexpr size_t kNameBytes = size_t{64} << 20;  // of all names together

constexpr char kHtml[] =
    "HTML, taken as text with its tags, scripts and menus: extract the text first, such as with "
    "`trafilatura --input-dir PAGES --output-dir TEXTS` (--as-text takes it as it is, without this "
    "line)";

// What many collections of texts in one file have between them.
constexpr std::string_view kEndOfText = "<|endoftext|>";
constexpr char kSeveralTexts[] =
    "one document that spells <|endoftext|>: --document-separator '<|endoftext|>' makes a document "
    "of each text between";

constexpr char kXml[] =
    "XML, taken as text with its tags (--as-text takes it as it is, without this line)";
constexpr char kWikiExtractor[] =
    "documents of WikiExtractor, taken as one text with their tags: `wikiextractor --json` writes "
    "lines of JSON, which are a document each";
constexpr char kLinesOfJson[] =
    "holds lines of JSON, and is taken as one text for its name: --format jsonl reads a document a "
    "line";
constexpr char kNoSeparator[] = "the --document-separator does not stand in it: it is one document";

bool is_xml(std::string_view text) {
  if (text.starts_with("\xef\xbb\xbf")) text.remove_prefix(3);
  return text.starts_with("<?xml ");
}

// <doc id="12" url="…" title="…"> … </doc>
bool is_of_wiki_extractor(std::string_view text) {
  return text.starts_with("<doc id=\"") && text.find("</doc>") != text.npos;
}

// Whether the first two lines, or the one, are JSON objects.
bool has_json_lines(std::string_view text) {
  constexpr size_t kMostBytes = size_t{1} << 20;
  for (int i = 0; i < 2; ++i) {
    const size_t end = text.find('\n');
    std::string_view line = text.substr(0, end);
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (i > 0 && line.empty()) return true;
    if (!line.starts_with("{\"") || !line.ends_with('}') || line.size() > kMostBytes) return false;
    if (!Json::accept(line.begin(), line.end())) return false;
    if (end == text.npos) return true;
    text.remove_prefix(end + 1);
  }
  return true;
}

// Files in a folder that hold no documents are passed over; any other failure is an error.
bool may_pass_over(bool is_named, const Error& error, InputFormat format, bool by_content) {
  if (is_named || error.code() != ErrorCode::kInvalid) return false;
  if (by_content || dynamic_cast<const ForeignFile*>(&error) != nullptr) return true;
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

// Whether documents come with the bytes of them that count.
bool has_spans(const ReadOptions& read) {
  return read.chat != nullptr && read.chat->options().finds_spans;
}

struct GivenUp {};

class MakingPiece {
 public:
  MakingPiece(const PieceTask& task, const PiecesOptions& options, PieceWorker& worker,
              SharedProgress& progress, const std::function<bool()>& go_on)
      : task_(task),
        worker_(worker),
        progress_(progress),
        go_on_(go_on),
        read_(options.read),
        out_(task.stem, task.joined, task.piece, has_spans(options.read)) {
    read_.scratch = options.work_folder;
    if (options.skip_invalid_lines) {
      read_.on_invalid_line = [this](const Error& error) {
        ++report_.num_invalid_lines;
        ++progress_.num_invalid_lines;
        add_warning(report_, error.what());
      };
    }
    read_.utf8.on_invalid = [this] { ++report_.num_invalid_utf8; };
    read_.bytes.on_read = [this](int64_t num_bytes) {
      num_told_ += num_bytes;
      progress_.num_input_bytes_done += num_bytes;
    };
    read_.on_format = [this](InputFormat found, const std::string& by_content) {
      take_format(found, by_content);
    };
    read_.on_text_column = [this](const std::string& found) { file_->column = found; };
    read_.on_spans = [this](std::vector<ByteRange> spans) { spans_ = std::move(spans); };
    read_.on_no_separator = [this] { add_found(report_, kNoSeparator, 1, file_->source); };
    read_.on_member = [this](const ArchiveMember& member, const std::function<void()>& read) {
      take_member(member, read);
    };
    read_.on_left_out = [this](const std::string& why, int64_t count, const std::string& first) {
      add_found(report_, "left out of the archive: " + why, count, first);
    };
  }

  PieceReport make() {
    for (size_t i = 0; i < task_.inputs.size(); ++i) {
      const InputFile& file = task_.inputs[i];
      input_ = task_.first_input + i;
      num_members_ = 0;
      File reading{.path = file.path, .source = source_name(file.path), .is_named = file.named};
      take(reading, [&] { read_documents(file.path, read_, visitor_); });
      ++progress_.num_files_done;
      progress_.num_input_bytes_done += file.num_bytes - std::exchange(num_told_, 0);
    }
    report_.counters = worker_.take_counters();
    out_.finish(task_.key, report_);
    return std::move(report_);
  }

 private:
  // A file of the disk, or a member of an archive.
  struct File {
    fs::path path;
    std::string source;
    int64_t number = 0;  // of a member whose name is not kept: in place of a record
    bool is_named = false, is_member = false;
    std::optional<CorpusSources> sources = std::nullopt;
    InputFormat format = InputFormat::kUnknown;
    std::string taken_for = "", column = "";
    int64_t num_rows = 0;
    bool has_html = false, has_xml = false, has_wiki = false, has_lines = false, spells_end = false;
  };

  void take_format(InputFormat found, const std::string& by_content) {
    file_->format = found;
    file_->taken_for = by_content;
    // Documents of a corpus keep the origins that its .sources gives.
    if (found != InputFormat::kArrow || file_->is_member) return;
    if (auto beside = CorpusSources::beside(file_->path))
      file_->sources.emplace(std::move(*beside));
  }

  void take_member(const ArchiveMember& member, const std::function<void()>& read) {
    num_name_bytes_ += member.path.native().size();
    const bool is_kept = ++num_members_ <= kNamedMembers && num_name_bytes_ <= kNameBytes;
    File reading{.path = member.path,
                 .source = source_name(is_kept ? member.path : member.archive),
                 .number = is_kept ? 0 : member.number,
                 .is_member = true};
    take(reading, read);
  }

  void take(File& file, const std::function<void()>& read) {
    File* const around = std::exchange(file_, &file);
    const int64_t num_before = report_.num_documents_read;
    const int64_t bytes_before = report_.num_bytes_read, invalid_before = report_.num_invalid_utf8;
    try {
      read();
      check_sources(file, bytes_before, invalid_before);
      if (file.format != InputFormat::kTar) ++report_.num_files;
      add_notes(file);
      if (report_.num_documents_read > num_before) note_kind(file);
    } catch (const Error& error) {
      pass_over(file, error, report_.num_documents_read > num_before);
    }
    file_ = around;
  }

  void pass_over(const File& file, const Error& error, bool has_documents) {
    if (is_decided_) throw;
    if (has_documents ||
        !may_pass_over(file.is_named, error, file.format, !file.taken_for.empty())) {
      is_decided_ = true;  // also for the archives around it
      if (file.taken_for.empty()) throw;
      throw Error(error.code(), fmt::format("{} (by its first bytes {}; --format names another)",
                                            error.what(), file.taken_for));
    }
    ++report_.num_skipped_files;
    add_warning(report_, error.what());
  }

  void visit(std::string_view text, int64_t record) {
    if (!go_on_()) throw GivenUp();
    File& file = *file_;
    const auto num_bytes = static_cast<int64_t>(text.size());
    file.num_rows = record;
    file.has_html = file.has_html || is_html(text);
    const bool is_text = file.format == InputFormat::kText;
    if (is_text) {
      file.has_xml = file.has_xml || is_xml(text);
      file.has_wiki = file.has_wiki || is_of_wiki_extractor(text);
      file.has_lines = file.has_lines || has_json_lines(text);
      file.spells_end = file.spells_end ||
                        (read_.document_separator.empty() && text.find(kEndOfText) != text.npos);
    }
    ++report_.num_documents_read;
    report_.num_bytes_read += num_bytes;
    progress_.num_documents.fetch_add(1, std::memory_order_relaxed);
    progress_.num_bytes.fetch_add(num_bytes, std::memory_order_relaxed);
    if (file.number > 0) record = file.number;
    const Origin origin = origin_of(file.sources, file.source, record);
    if (text.empty() && report_.first_empty.empty()) {
      report_.first_empty = fmt::format("{}, record {}", origin.source, origin.record);
    }
    worker_.add({text, origin, input_, spans_}, out_);
  }

  void check_sources(const File& file, int64_t bytes_before, int64_t invalid_before) const {
    if (!file.sources) return;
    const bool is_as_written = report_.num_invalid_utf8 == invalid_before;
    if (is_as_written || file.num_rows > file.sources->num_documents()) {
      file.sources->check_is_of(file.path, file.num_rows, report_.num_bytes_read - bytes_before);
    }
  }

  void add_notes(const File& file) {
    const auto add = [&](const std::string& what) { add_found(report_, what, 1, file.source); };
    if (!file.taken_for.empty()) {
      add(fmt::format("taken for {} by the first bytes (--format names another)", file.taken_for));
    }
    if (file.spells_end) add(kSeveralTexts);
    // Who asks for text as it stands knows.
    if (!takes_as_it_stands(read_)) {
      if (file.has_html) add(kHtml);
      if (file.has_xml && !file.has_html) add(kXml);
      if (file.has_wiki) add(kWikiExtractor);
      if (file.has_lines) add(kLinesOfJson);
    }
    if (!file.column.empty()) {
      add(fmt::format("has no `{}`: its documents are `{}` (--text-column names another)",
                      kTextColumns[0], file.column));
    }
  }

  // Of files that nobody named, the first text and the first table: whether both are there.
  void note_kind(const File& file) {
    if (file.is_named || file.format == InputFormat::kTar) return;
    const bool is_text = file.format == InputFormat::kText || file.format == InputFormat::kLines;
    std::string& first = is_text ? report_.first_text : report_.first_table;
    if (first.empty()) first = file.source;
  }

  const PieceTask& task_;
  PieceWorker& worker_;
  SharedProgress& progress_;
  const std::function<bool()>& go_on_;
  ReadOptions read_;
  PieceOutput out_;
  PieceReport report_;
  File* file_ = nullptr;          // that is read
  std::vector<ByteRange> spans_;  // of the next document
  size_t input_ = 0;
  int64_t num_told_ = 0;     // bytes of the input
  int64_t num_members_ = 0;  // of it
  size_t num_name_bytes_ = 0;
  bool is_decided_ = false;  // that an error ends it
  const DocumentVisitor visitor_ = [this](std::string_view text, int64_t record) {
    visit(text, record);
  };
};

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
  try {
    return MakingPiece(task, options, worker, progress, go_on).make();
  } catch (const GivenUp&) {
    return std::nullopt;
  }
}

}  // namespace skein
