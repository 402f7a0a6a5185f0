// Web archives: the texts of Common Crawl's WET files.
//
// Format  a record is the line WARC/1.0, lines `Name: value`, an empty line, and Content-Length
//         bytes, then two line breaks. Names are compared without case
// Source  https://iipc.github.io/warc-specifications/specifications/warc-format/warc-1.1/
#include <fmt/format.h>

#include <charconv>

#include "skein/base/text/visible_text.h"
#include "skein/prepare/read/readers.h"

namespace skein {
namespace {

constexpr size_t kReadAtOnce = size_t{1} << 18;
constexpr size_t kMaxHeaderBytes = size_t{1} << 20;
constexpr size_t kMaxTypeBytes = 40;

struct WarcRecord {
  std::string type;
  int64_t num_bytes = -1;
};

class RecordReader {
 public:
  RecordReader(std::unique_ptr<ByteSource> source, const std::string& name, int64_t max_bytes)
      : source_(std::move(source)), name_(name), max_bytes_(max_bytes) {}

  // False at the end.
  bool next(WarcRecord& record) {
    std::string_view line;
    do {
      if (!read_line(line)) return false;
    } while (line.empty());
    ++number_;
    if (!line.starts_with("WARC/")) damaged("begins with no line WARC/1.0");
    record = {};
    while (true) {
      if (!read_line(line)) damaged("its header does not end (truncated?)");
      if (line.empty()) break;
      take_field(line, record);
    }
    if (record.num_bytes < 0) damaged("its header has no Content-Length");
    return true;
  }

  // The content of the record that next() gave; valid until the next call.
  std::string_view content(const WarcRecord& record) {
    if (record.num_bytes > max_bytes_) {
      fail(ErrorCode::kUnsupported, "{}: {} bytes: expected a document of at most {}", where(),
           record.num_bytes, max_bytes_);
    }
    const auto wanted = static_cast<size_t>(record.num_bytes);
    while (buffer_.size() - begin_ < wanted) {
      if (!fill()) damaged("its text does not end (truncated?)");
    }
    begin_ += wanted;
    return std::string_view(buffer_).substr(begin_ - wanted, wanted);
  }
  void pass_over(const WarcRecord& record) {
    for (int64_t left = record.num_bytes; left > 0;) {
      if (begin_ == buffer_.size() && !fill()) damaged("its content does not end (truncated?)");
      const auto step = std::min<int64_t>(left, static_cast<int64_t>(buffer_.size() - begin_));
      begin_ += static_cast<size_t>(step);
      left -= step;
    }
  }
  int64_t number() const { return number_; }
  std::string where() const { return fmt::format("{}, record {}", name_, number_); }

 private:
  bool fill() {
    buffer_.erase(0, begin_);
    begin_ = 0;
    return append_from(*source_, buffer_, kReadAtOnce);
  }

  // Without its line break.
  bool read_line(std::string_view& line) {
    size_t end, searched = 0;
    while ((end = buffer_.find('\n', begin_ + searched)) == buffer_.npos) {
      searched = buffer_.size() - begin_;
      if (searched > kMaxHeaderBytes) damaged("a line of its header has no end");
      if (fill()) continue;
      if (searched == 0) return false;
      end = buffer_.size();
      break;
    }
    line = std::string_view(buffer_).substr(begin_, end - begin_);
    begin_ = std::min(end + 1, buffer_.size());
    if (line.ends_with('\r')) line.remove_suffix(1);
    return true;
  }

  void take_field(std::string_view line, WarcRecord& record) const {
    const size_t colon = line.find(':');
    if (colon == line.npos) return;  // a value that is continued
    const std::string name = lower_case(std::string(line.substr(0, colon)));
    std::string_view value = line.substr(colon + 1);
    value.remove_prefix(std::min(value.find_first_not_of(" \t"), value.size()));
    if (name == "warc-type") record.type = lower_case(std::string(value.substr(0, kMaxTypeBytes)));
    if (name != "content-length") return;
    const auto [end, error] =
        std::from_chars(value.data(), value.data() + value.size(), record.num_bytes);
    const std::string_view behind(end, value.data() + value.size());
    if (error != std::errc() || record.num_bytes < 0 ||
        behind.find_first_not_of(" \t") != behind.npos) {
      damaged("its Content-Length is no number");
    }
  }

  [[noreturn]] void damaged(const char* what) const {
    fail(ErrorCode::kCorrupt, "{}: not a WARC record: {}", where(), what);
  }

  std::unique_ptr<ByteSource> source_;
  const std::string& name_;
  const int64_t max_bytes_;
  std::string buffer_;
  size_t begin_ = 0;  // of what was not returned yet
  int64_t number_ = 0;
};

}  // namespace

void read_warc(std::unique_ptr<ByteSource> source, const std::string& name,
               const ReadOptions& options, const DocumentVisitor& visit) {
  RecordReader records(std::move(source), name, options.max_document_bytes);
  int64_t num_texts = 0, num_others = 0;
  std::string other;  // the type of the first of the others
  std::string repaired;
  for (WarcRecord record; records.next(record);) {
    if (record.type != "conversion") {
      if (record.type != "warcinfo" && num_others++ == 0) other = record.type;
      records.pass_over(record);
      continue;
    }
    ++num_texts;
    std::string_view text = records.content(record);
    if (accept_text(text, repaired, records.where(), options)) visit(text, records.number());
  }
  if (num_texts > 0 || num_others == 0) return;
  fail(
      ErrorCode::kInvalid,
      "{}: a web archive of {} records (the first is `{}`) and none of text: expected `conversion` "
      "records, as the .warc.wet.gz beside each archive of Common Crawl has them",
      name, num_others, escape_invalid_utf8(other));
}

}  // namespace skein
