// Files named .json: one document per line, an array of documents, or one over several lines.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "skein/prepare/read/readers.h"

namespace skein {
namespace {

constexpr size_t kBufferBytes = size_t{1} << 18;

bool is_space(char byte) { return byte == ' ' || byte == '\t' || byte == '\n' || byte == '\r'; }

// Single bytes, with the number of the line.
class Bytes {
 public:
  explicit Bytes(std::unique_ptr<ByteSource> source) : source_(std::move(source)) {}

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

  Bytes bytes_;
  const std::string& name_;
  size_t max_bytes_;
  bool started_ = false, in_array_ = false;
  int64_t num_values_ = 0;
  int64_t first_line_ = 1;
};

// Whether the first non-empty line holds a whole object. An array may be one long line.
bool is_json_lines(const fs::path& path, const ReadOptions& options) {
  char first_byte = 0;
  if (!Bytes(open_bytes(path)).peek_after_space(first_byte) || first_byte == '[') return false;
  LineReader lines(open_bytes(path), path.string(), options.max_document_bytes);
  std::string_view line;
  while (lines.next(line)) {
    const size_t first = line.find_first_not_of(" \t\r");
    if (first == std::string_view::npos) continue;
    return line[first] == '{' && nlohmann::json::accept(line.begin(), line.end());
  }
  return false;
}

}  // namespace

void read_json_values(std::unique_ptr<ByteSource> source, const std::string& name,
                      const ReadOptions& options, const DocumentVisitor& visit) {
  ValueReader values(std::move(source), name, options.max_document_bytes);
  std::string value;
  while (values.next(value)) {
    std::string text;
    try {
      text = parse_json_document(value, fmt::format("{}:{}", name, values.first_line()),
                                 options.text_column);
    } catch (const Error& error) {
      if (!options.on_invalid_line) throw;
      options.on_invalid_line(error);
      continue;
    }
    visit(text, values.num_values());
  }
}

void read_json(const fs::path& path, const ReadOptions& options, const DocumentVisitor& visit) {
  const auto read = is_json_lines(path, options) ? read_json_lines : read_json_values;
  read(open_bytes(path), path.string(), options, visit);
}

}  // namespace skein
