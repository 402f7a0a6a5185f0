// Files named .json: one document per line, an array of documents, or one over several lines.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "skein/base/text/python_json.h"
#include "skein/prepare/read/json_document.h"
#include "skein/prepare/read/readers.h"

namespace skein {
namespace {

constexpr size_t kBufferBytes = size_t{1} << 18;

bool is_space(char byte) { return byte == ' ' || byte == '\t' || byte == '\n' || byte == '\r'; }

// Single bytes, with the number of the line.
class ByteCursor {
 public:
  explicit ByteCursor(std::unique_ptr<ByteSource> source) : source_(std::move(source)) {}

  // False at the end.
  bool peek(char& byte) {
    if (begin_ == end_) {
      begin_ = 0;
      end_ = source_->read({buffer_.data(), buffer_.size()});
    }
    if (end_ == 0) return false;
    byte = buffer_[begin_];
    return true;
  }
  void skip() { line_ += buffer_[begin_++] == '\n'; }
  bool peek_after_space(char& byte) {
    while (peek(byte) && is_space(byte)) skip();
    return peek(byte);
  }
  int64_t line() const { return line_; }

 private:
  std::unique_ptr<ByteSource> source_;
  std::string buffer_ = std::string(kBufferBytes, '\0');
  size_t begin_ = 0, end_ = 0;
  int64_t line_ = 1;
};

// Finds where JSON values end; whether they are valid is for the parser to check.
class ValueReader {
 public:
  ValueReader(std::unique_ptr<ByteSource> source, const std::string& name, int64_t max_bytes)
      : bytes_(std::move(source)), name_(name), max_bytes_(static_cast<size_t>(max_bytes)) {}

  // The next value, or element of the array; false at the end.
  bool next(std::string& value) {
    if (!started_) start();
    char byte;
    bool more = bytes_.peek_after_space(byte);
    if (in_array_ && more && byte == ']') return end_array();
    if (in_array_ && more && num_values_ > 0) {
      if (byte != ',') damaged("expected `,` or `]` after an element of the array");
      bytes_.skip();
      more = bytes_.peek_after_space(byte);
    }
    if (!more && in_array_) damaged("the array does not end (truncated?)");
    if (!more) return false;
    first_line_ = bytes_.line();
    read_value(value);
    ++num_values_;
    return true;
  }
  int64_t first_line() const { return first_line_; }  // of the value that next() gave
  int64_t num_values() const { return num_values_; }  // with that one

 private:
  void start() {
    started_ = true;
    char byte;
    for (const char mark : {'\xef', '\xbb', '\xbf'}) {  // a byte order mark, or part of one
      if (bytes_.peek(byte) && byte == mark) bytes_.skip();
    }
    if (!bytes_.peek_after_space(byte) || byte != '[') return;
    bytes_.skip();
    in_array_ = true;
  }
  bool end_array() {
    bytes_.skip();
    in_array_ = false;
    char byte;
    if (bytes_.peek_after_space(byte)) damaged("expected nothing after the array");
    return false;
  }
  void read_value(std::string& value) {
    value.clear();
    int64_t depth = 0;
    bool in_string = false, is_escaped = false;
    for (char byte; true;) {
      if (!bytes_.peek(byte)) {
        if (depth == 0 && !in_string) return;
        damaged("the value does not end (truncated?)");
      }
      const bool ends_before = depth == 0 && !in_string && !value.empty() &&
                               (is_space(byte) || byte == ',' || byte == ']' || byte == '}');
      if (ends_before) return;
      bytes_.skip();
      value.push_back(byte);
      if (value.size() > max_bytes_) {
        fail(ErrorCode::kUnsupported, "{}:{}: a value of more than {} bytes: expected a document",
             name_, first_line_, max_bytes_);
      }
      if (in_string) {
        if (!is_escaped && byte == '"') in_string = false;
        is_escaped = !is_escaped && byte == '\\';
      } else if (byte == '"') {
        in_string = true;
      } else if (byte == '{' || byte == '[') {
        ++depth;
      } else if (byte == '}' || byte == ']') {
        --depth;
      }
      if (depth <= 0 && !in_string && (byte == '}' || byte == ']' || byte == '"')) return;
    }
  }
  [[noreturn]] void damaged(const char* what) const {
    fail(ErrorCode::kInvalid, "{}:{}: not JSON: {}", name_, bytes_.line(), what);
  }

  ByteCursor bytes_;
  const std::string& name_;
  size_t max_bytes_;
  bool started_ = false, in_array_ = false;
  int64_t num_values_ = 0;
  int64_t first_line_ = 1;
};

}  // namespace

void read_json_values(std::unique_ptr<ByteSource> source, const std::string& name,
                      const ReadOptions& options, const DocumentVisitor& visit) {
  ValueReader values(std::move(source), name, options.max_document_bytes);
  JsonDocuments documents(options, visit, name,
                          [&] { return fmt::format("{}:{}", name, values.first_line()); });
  for (std::string value; values.next(value);) documents.take(value, values.num_values());
}

bool looks_like_json_lines(PeekedSource& source, const ReadOptions& options) {
  constexpr size_t kHeadBytes = size_t{256} << 10, kLines = 64;
  constexpr std::string_view kMark = "\xef\xbb\xbf";
  size_t wanted = kHeadBytes;
  std::string_view head = source.peek(wanted);
  const size_t first = head.find_first_not_of(" \t\r\n", head.starts_with(kMark) ? 3 : 0);
  if (first != std::string_view::npos && head[first] == '[') return false;
  // At least a line, however long it is.
  while (head.size() == wanted && head.find('\n') == std::string_view::npos &&
         static_cast<int64_t>(wanted) <= options.max_document_bytes) {
    head = source.peek(wanted *= 2);
  }
  const bool is_whole = head.size() < wanted;
  if (head.starts_with(kMark)) head.remove_prefix(kMark.size());
  size_t num_lines = 0, num_objects = 0;
  while (!head.empty() && num_lines < kLines) {
    const size_t end = head.find('\n');
    if (end == std::string_view::npos && !is_whole && num_lines > 0) break;  // a part of a line
    std::string_view line = head.substr(0, end);
    head.remove_prefix(end == std::string_view::npos ? head.size() : end + 1);
    while (!line.empty() && is_space(line.back())) line.remove_suffix(1);
    if (line.find_first_not_of(" \t\r") == std::string_view::npos) continue;
    ++num_lines;
    const bool is_object = line.front() == '{' && line.back() == '}' &&
                           nlohmann::json::accept(plain_json(line, true).text);
    num_objects += is_object ? 1 : 0;
    if (is_object && num_lines == 1) return true;
  }
  return num_objects * 2 > num_lines;
}

void read_json(std::unique_ptr<PeekedSource> source, const std::string& name,
               const ReadOptions& options, const DocumentVisitor& visit) {
  const auto read = looks_like_json_lines(*source, options) ? read_json_lines : read_json_values;
  read(std::move(source), name, options, visit);
}

}  // namespace skein
