// Tables as text: a line of column names, then one line per row; fields in double quotes may hold
// delimiters, line breaks and doubled quotes (RFC 4180). Tab-separated files are read in the same
// way.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "skein/base/text/shell_words.h"
#include "skein/data/corpus/text_column.h"
#include "skein/prepare/read/readers.h"

namespace skein {
namespace {

constexpr size_t kBufferBytes = size_t{1} << 18;

// Reads field by field; keeps one column, and all of the first row.
class TableReader {
 public:
  TableReader(std::unique_ptr<ByteSource> source, const std::string& name, char delimiter,
              int64_t max_bytes)
      : source_(std::move(source)),
        name_(name),
        delimiter_(delimiter),
        max_bytes_(static_cast<size_t>(max_bytes)) {
    skip_byte_order_mark();
  }

  enum class FieldEnd { kField, kRow, kFile };

  // Reads one field into `field`; returns kFile if no further row begins.
  FieldEnd next(std::string& field) {
    field.clear();
    char byte;
    if (!peek(byte)) return FieldEnd::kFile;
    const bool is_quoted = byte == '"';
    if (is_quoted) read_quoted(field);
    while (peek(byte)) {
      skip();
      if (byte == delimiter_) return FieldEnd::kField;
      if (byte == '\n') return FieldEnd::kRow;
      if (byte == '\r') {
        if (peek(byte) && byte == '\n') skip();
        return FieldEnd::kRow;
      }
      if (is_quoted) {
        fail(damaged_, "{}:{}: text after the closing quote of a field", name_, line_);
      }
      push(field, byte);
    }
    return FieldEnd::kRow;
  }
  int64_t line() const { return line_; }
  // The first line named the columns, so an error from here on means a damaged table, not another
  // kind of file.
  void expect_rows() { damaged_ = ErrorCode::kCorrupt; }

 private:
  void skip_byte_order_mark() {
    constexpr std::string_view kMark = "\xef\xbb\xbf";
    for (size_t read = 1; read > 0 && end_ < kMark.size(); end_ += read) {
      read = source_->read({buffer_.data() + end_, buffer_.size() - end_});
    }
    if (std::string_view(buffer_).substr(0, end_).starts_with(kMark)) begin_ = kMark.size();
  }
  void read_quoted(std::string& field) {
    const int64_t first_line = line_;
    skip();
    for (char byte; peek(byte);) {
      skip();
      if (byte != '"') {
        push(field, byte);
      } else if (peek(byte) && byte == '"') {
        skip();
        push(field, byte);
      } else {
        return;
      }
    }
    fail(damaged_, "{}:{}: a quoted field does not end (truncated?)", name_, first_line);
  }
  void push(std::string& field, char byte) {
    field.push_back(byte);
    if (field.size() > max_bytes_) {
      fail(damaged_, "{}:{}: a field of more than {} bytes", name_, line_, max_bytes_);
    }
  }
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

  std::unique_ptr<ByteSource> source_;
  const std::string& name_;
  char delimiter_;
  size_t max_bytes_;
  ErrorCode damaged_ = ErrorCode::kInvalid;
  std::string buffer_ = std::string(kBufferBytes, '\0');
  size_t begin_ = 0, end_ = 0;
  int64_t line_ = 1;
};

using FieldEnd = TableReader::FieldEnd;

struct Columns {
  size_t count = 0;
  size_t text = 0;
};

// What helps where the one name is several, with other delimiters between.
std::string advice_of_delimiter(const std::string& name, const std::string& names, size_t count) {
  if (count != 1) return "";
  if (names.find('\t') != names.npos && lower_case(name).ends_with(".csv")) {
    return fmt::format("; tabs stand between its columns: `mv {} {}` gives it the right name",
                       shell_word(name), shell_word(name.substr(0, name.size() - 4) + ".tsv"));
  }
  if (names.find(';') == names.npos) return "";
  return fmt::format(
      "; semicolons stand between its columns: `python3 -c \"import csv, sys; "
      "csv.writer(sys.stdout).writerows(csv.reader(sys.stdin, delimiter=';'))\" < {} > NEW.csv` "
      "makes commas of them",
      shell_word(name));
}

Columns read_names(TableReader& table, const std::string& name, const ReadOptions& options) {
  Columns columns;
  std::multimap<std::string, size_t> found;  // of those that the documents may be in
  const std::vector<std::string> choice = text_columns(options);
  std::string field, names;
  for (FieldEnd end = FieldEnd::kField; end == FieldEnd::kField; ++columns.count) {
    end = table.next(field);
    if (std::find(choice.begin(), choice.end(), field) != choice.end()) {
      found.emplace(field, columns.count);
    }
    if (names.size() < 200) names += (names.empty() ? "`" : ", `") + field.substr(0, 80) + "`";
  }
  const std::string wanted =
      first_of(choice, [&](const std::string& each) { return found.contains(each); });
  const size_t num_found = found.count(wanted);
  if (num_found == 1) {
    columns.text = found.find(wanted)->second;
    tell_text_column(wanted, options);
    return columns;
  }
  check_utf8(names, name + ":1");
  fail(ErrorCode::kInvalid,
       "{}: has {} columns named `{}` (its first line: {}): expected a first line of column names "
       "with one `{}` (--text-column names another, --as-text takes the file as it stands){}",
       name, num_found, wanted, names, wanted, advice_of_delimiter(name, names, columns.count));
}

}  // namespace

void read_csv(std::unique_ptr<ByteSource> source, const std::string& name, char delimiter,
              const ReadOptions& options, const DocumentVisitor& visit) {
  TableReader table(std::move(source), name, delimiter, options.max_document_bytes);
  const Columns columns = read_names(table, name, options);
  table.expect_rows();
  std::string field, text, repaired;
  int64_t row = 0, line = 0;
  const auto where = [&] { return fmt::format("{}:{}", name, line); };
  while (true) {
    line = table.line();
    size_t count = 0;
    FieldEnd end = FieldEnd::kField;
    for (; end == FieldEnd::kField; ++count) {
      end = table.next(field);
      if (count == columns.text) std::swap(field, text);
    }
    // A delimiter at the very end of the file is followed by one more, empty, field.
    if (end == FieldEnd::kFile && count == 1) return;
    const bool is_blank = count == 1 && (columns.text == 0 ? text : field).empty();
    if (is_blank && columns.count > 1) continue;
    if (count != columns.count) {
      fail(ErrorCode::kCorrupt, "{}:{}: a row of {} fields: expected {}, as in the first line",
           name, line, count, columns.count);
    }
    ++row;
    std::string_view document = text;
    if (accept_utf8(document, repaired, options.utf8, where)) visit(document, row);
  }
}

}  // namespace skein
