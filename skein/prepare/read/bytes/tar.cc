#include "skein/prepare/read/bytes/tar.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <limits>
#include <optional>

#include "skein/base/text/visible_text.h"
#include "skein/prepare/read/bytes/foreign_files.h"

namespace skein {
namespace {

constexpr size_t kReadAtOnce = size_t{1} << 18;
constexpr int64_t kMaxTextBytes = int64_t{1} << 20;  // of a long name, or of pax records
constexpr int64_t kAny = std::numeric_limits<int64_t>::max();

std::string_view text_field(std::string_view block, size_t begin, size_t num_bytes) {
  const std::string_view field = block.substr(begin, num_bytes);
  return field.substr(0, field.find('\0'));
}

// Octal digits between spaces, or, where the first bit is set, the number itself.
std::optional<int64_t> number_field(std::string_view block, size_t begin, size_t num_bytes) {
  std::string_view field = block.substr(begin, num_bytes);
  int64_t value = 0;
  if ((static_cast<uint8_t>(field[0]) & 0x80) != 0) {
    for (size_t i = 0; i < field.size(); ++i) {
      const int64_t byte = static_cast<uint8_t>(field[i]) & (i == 0 ? 0x7f : 0xff);
      if (value > (kAny >> 8)) return std::nullopt;
      value = value << 8 | byte;
    }
    return value;
  }
  field = field.substr(0, field.find('\0'));
  field.remove_prefix(std::min(field.find_first_not_of(' '), field.size()));
  while (field.ends_with(' ')) field.remove_suffix(1);
  if (field.empty()) return 0;
  const auto [end, error] = std::from_chars(field.data(), field.data() + field.size(), value, 8);
  if (error != std::errc() || end != field.data() + field.size() || value < 0) return std::nullopt;
  return value;
}

bool is_zero(std::string_view block) {
  return block.find_first_not_of('\0') == std::string_view::npos;
}

constexpr size_t kSumBegin = 148, kSumBytes = 8;

// Some old programs added bytes with a sign.
bool has_right_sum(std::string_view block) {
  int64_t plain = 0, with_signs = 0;
  for (size_t i = 0; i < block.size(); ++i) {
    const char byte = i >= kSumBegin && i < kSumBegin + kSumBytes ? ' ' : block[i];
    plain += static_cast<uint8_t>(byte);
    with_signs += static_cast<int8_t>(byte);
  }
  const auto sum = number_field(block, kSumBegin, kSumBytes);
  return sum && (*sum == plain || *sum == with_signs);
}

// Without what would lead elsewhere.
std::string plain_name(std::string_view name) {
  while (name.starts_with("./") || name.starts_with('/')) {
    name.remove_prefix(name.starts_with('/') ? 1 : 2);
  }
  return std::string(name);
}

bool leads_out(const std::string& name) {
  const fs::path path(name);
  return std::find(path.begin(), path.end(), "..") != path.end();
}

const char* why_left_out(char type) {
  switch (type) {
    case '1':
      return "a hard link to another member";
    case '2':
      return "a symbolic link";
    case '3':
    case '4':
      return "a device";
    case '6':
      return "a named pipe";
    default:
      return "of a kind that is no file";
  }
}

}  // namespace

struct TarReader::Header {
  explicit Header(std::string_view block) : type(block[156]) {
    const bool is_posix = block.substr(257, 6) == std::string_view("ustar\0", 6);
    const std::string_view prefix = is_posix ? text_field(block, 345, 155) : std::string_view();
    name = prefix.empty() ? "" : std::string(prefix) + "/";
    name += text_field(block, 0, 100);
    num_bytes = number_field(block, 124, 12);
  }
  char type;
  std::string name;
  std::optional<int64_t> num_bytes;
};

struct TarReader::Extended {
  std::optional<std::string> name;
  std::optional<int64_t> num_bytes;
  bool is_sparse = false;
};

bool is_tar(std::string_view head) {
  if (head.size() < kTarBlockBytes) return false;
  const std::string_view block = head.substr(0, kTarBlockBytes);
  return block[0] != '\0' && has_right_sum(block) && number_field(block, 124, 12);
}

TarReader::TarReader(std::unique_ptr<ByteSource> source, const std::string& name)
    : source_(std::move(source)), name_(name) {}

void TarReader::damaged(const std::string& what) const {
  fail(ErrorCode::kCorrupt, "{}: damaged tar archive, near byte {}: {}", name_, position_, what);
}

bool TarReader::fill() {
  buffer_.erase(0, begin_);
  begin_ = 0;
  return append_from(*source_, buffer_, kReadAtOnce);
}

// False at the end, or where a part of a block is left.
bool TarReader::read_block(std::string_view& block) {
  while (buffer_.size() - begin_ < kTarBlockBytes && fill()) {
  }
  block = std::string_view(buffer_).substr(begin_, kTarBlockBytes);
  begin_ += block.size();
  position_ += static_cast<int64_t>(block.size());
  return block.size() == kTarBlockBytes;
}

// False at the end of the archive.
bool TarReader::read_header(std::string_view& block) {
  bool has_end = false;
  while (read_block(block)) {
    if (!is_zero(block)) {
      if (!has_right_sum(block)) damaged("expected the header of a member");
      return true;
    }
    has_end = true;
  }
  if (!is_zero(block)) damaged("its last block is not whole (truncated?)");
  if (!has_end) {
    damaged(
        "it ends without the two blocks of zeros that close an archive (truncated? If it is whole, "
        "`head -c 1024 /dev/zero >> ARCHIVE` adds them to a plain .tar)");
  }
  return false;
}

// Of a header that stands for the text behind it.
std::string TarReader::read_text(const Header& header) {
  const int64_t num_bytes = header.num_bytes.value_or(-1);
  if (num_bytes < 0 || num_bytes > kMaxTextBytes) damaged("a name of that length");
  std::string text;
  while (static_cast<int64_t>(text.size()) < num_bytes) {
    std::string_view block;
    if (!read_block(block)) damaged("a name does not end (truncated?)");
    text += block;
  }
  text.resize(static_cast<size_t>(num_bytes));
  return text;
}

// Records "LENGTH KEY=VALUE\n", in which the length counts itself.
void TarReader::take_pax(const std::string& records, Extended& extended) const {
  for (std::string_view rest = records; !rest.empty() && rest[0] != '\0';) {
    size_t length = 0;
    const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), length);
    const auto digits = static_cast<size_t>(end - rest.data());
    if (error != std::errc() || length > rest.size() || length < digits + 3 ||
        rest[digits] != ' ' || rest[length - 1] != '\n') {
      damaged("records of pax that are none");
    }
    const std::string_view record = rest.substr(digits + 1, length - digits - 2);
    rest.remove_prefix(length);
    const size_t equals = record.find('=');
    if (equals == record.npos) damaged("records of pax that are none");
    const std::string_view key = record.substr(0, equals), value = record.substr(equals + 1);
    if (key == "path") extended.name = std::string(value);
    if (key.starts_with("GNU.sparse.")) extended.is_sparse = true;
    if (key != "size") continue;
    int64_t num_bytes = 0;
    const auto parsed = std::from_chars(value.data(), value.data() + value.size(), num_bytes);
    if (parsed.ec != std::errc() || num_bytes < 0) damaged("a size that is no number");
    extended.num_bytes = num_bytes;
  }
}

bool TarReader::next(TarMember& member) {
  pass_over_content();
  Extended extended;
  for (std::string_view block; read_header(block);) {
    const Header header(block);
    if (header.type == 'L') {
      const std::string text = read_text(header);
      extended.name = text.substr(0, text.find('\0'));
      continue;
    }
    if (header.type == 'x' || header.type == 'X') {
      take_pax(read_text(header), extended);
      continue;
    }
    if (header.type == 'K' || header.type == 'g') {  // of links, or of all: nothing that is read
      read_text(header);
      continue;
    }
    member = {};
    member.name = plain_name(extended.name ? *extended.name : header.name);
    const bool has_folder_name = member.name.ends_with('/');
    const bool is_file =
        (header.type == '0' || header.type == '\0' || header.type == '7') && !has_folder_name;
    member.is_folder = header.type == '5' || has_folder_name || member.name.empty();
    const auto num_bytes = extended.num_bytes ? extended.num_bytes : header.num_bytes;
    if (!num_bytes) damaged("a size that is no number");
    if (header.type == 'S' || header.type == 'M' || (extended.is_sparse && is_file)) {
      fail(ErrorCode::kUnsupported,
           "{}: {} is {}, which is not read in an archive: `{}` unpacks it, and the folder is read",
           name_, escape_invalid_utf8(member.name),
           header.type == 'M' ? "of an archive of several volumes" : "a sparse file",
           command_on("mkdir {1} && tar -C {1} -xf {0}", name_));
    }
    const bool has_content = header.type < '1' || header.type > '6';
    content_left_ = has_content ? *num_bytes : 0;
    padding_left_ = -content_left_ & static_cast<int64_t>(kTarBlockBytes - 1);
    member.num_bytes = content_left_;
    if (!is_file && !member.is_folder) member.left_out = why_left_out(header.type);
    if (is_file && leads_out(member.name)) member.left_out = "its name leads out of the archive";
    return true;
  }
  return false;
}

void TarReader::pass_over_content() {
  for (int64_t* left : {&content_left_, &padding_left_}) {
    while (*left > 0) {
      if (begin_ == buffer_.size() && !fill()) damaged("a member does not end (truncated?)");
      const auto step = std::min<int64_t>(*left, static_cast<int64_t>(buffer_.size() - begin_));
      begin_ += static_cast<size_t>(step);
      position_ += step;
      *left -= step;
    }
  }
}

size_t TarReader::read_content(std::span<char> out) {
  if (content_left_ == 0 || out.empty()) return 0;
  if (begin_ == buffer_.size() && !fill()) damaged("a member does not end (truncated?)");
  const auto count = static_cast<size_t>(std::min({static_cast<int64_t>(out.size()), content_left_,
                                                   static_cast<int64_t>(buffer_.size() - begin_)}));
  std::copy_n(buffer_.data() + begin_, count, out.data());
  begin_ += count;
  position_ += static_cast<int64_t>(count);
  content_left_ -= static_cast<int64_t>(count);
  return count;
}

std::unique_ptr<ByteSource> TarReader::content() {
  class MemberContent : public ByteSource {
   public:
    explicit MemberContent(TarReader& reader) : reader_(reader) {}
    size_t read(std::span<char> out) override { return reader_.read_content(out); }

   private:
    TarReader& reader_;
  };
  return std::make_unique<MemberContent>(*this);
}

}  // namespace skein
