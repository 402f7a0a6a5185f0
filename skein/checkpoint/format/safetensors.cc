#include "skein/checkpoint/format/safetensors.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <unordered_set>

#include "skein/base/error.h"
#include "skein/base/files/lfs_pointer.h"
#include "skein/base/text/json.h"
#include "skein/checkpoint/format/boxes.h"

namespace skein {
namespace {

constexpr int kLengthBytes = 8;
constexpr size_t kMaxRank = 32;

struct KnownDType {
  std::string_view name;
  int64_t bytes;
  std::optional<DType> dtype;
};
constexpr std::array<KnownDType, 15> kDTypes = {{
    {"F32", 4, DType::kF32},
    {"BF16", 2, DType::kBF16},
    {"F64", 8, DType::kF64},
    {"I32", 4, DType::kI32},
    {"F16", 2, std::nullopt},
    {"BOOL", 1, std::nullopt},
    {"U8", 1, std::nullopt},
    {"I8", 1, std::nullopt},
    {"U16", 2, std::nullopt},
    {"I16", 2, std::nullopt},
    {"U32", 4, std::nullopt},
    {"U64", 8, std::nullopt},
    {"I64", 8, std::nullopt},
    {"F8_E4M3", 1, std::nullopt},
    {"F8_E5M2", 1, std::nullopt},
}};

// Names from outside, short enough for a message.
std::string clip(const std::string& text) {
  return text.size() <= 200 ? text : fmt::format("{}…", std::string_view(text).substr(0, 200));
}

// Builds the entries directly from the parser's events: memory is bounded by what is kept, and any
// JSON of another form ends the parse immediately.
class HeaderHandler : public nlohmann::json_sax<Json> {
 public:
  std::vector<SafetensorsEntry> entries;  // begin and end relative to the data
  std::map<std::string, std::string> metadata;
  std::string problem;

  bool null() override { return unexpected("null"); }
  bool boolean(bool) override { return unexpected("a boolean"); }
  bool number_integer(number_integer_t value) override {
    return stop(fmt::format("{}: found {}, expected no negative number", where(), value));
  }
  bool number_float(number_float_t, const string_t& text) override {
    return stop(fmt::format("{}: found {}, expected an integer below 2^63", where(), clip(text)));
  }
  bool binary(binary_t&) override { return unexpected("binary"); }

  bool number_unsigned(number_unsigned_t value) override {
    if (state_ != HeaderState::kShape && state_ != HeaderState::kOffsets)
      return unexpected("a number");
    if (value > static_cast<uint64_t>(INT64_MAX)) {
      return stop(fmt::format("{}: found {}, expected an integer below 2^63", where(), value));
    }
    numbers_.push_back(static_cast<int64_t>(value));
    const size_t limit = state_ == HeaderState::kShape ? kMaxRank : 2;
    if (numbers_.size() <= limit) return true;
    return stop(fmt::format("{}: found more than the {} numbers expected", where(), limit));
  }

  bool string(string_t& text) override {
    if (state_ == HeaderState::kMetadata) {
      metadata[key_] = text;
      return true;
    }
    if (state_ != HeaderState::kTensor || key_ != "dtype") return unexpected("a string");
    entries.back().dtype = text;
    return true;
  }

  bool start_object(std::size_t) override {
    if (state_ == HeaderState::kStart) {
      state_ = HeaderState::kTop;
    } else if (state_ == HeaderState::kTop && name_ == "__metadata__") {
      state_ = HeaderState::kMetadata;
    } else if (state_ == HeaderState::kTop) {
      entries.push_back({.name = name_});
      state_ = HeaderState::kTensor;
    } else {
      return unexpected("an object");
    }
    keys_.clear();
    return true;
  }

  bool key(string_t& key) override {
    if (state_ == HeaderState::kTop) {
      name_ = key;
      key_.clear();
      if (names_.insert(key).second) return true;
      return stop(fmt::format("tensor \"{}\" occurs twice", clip(key)));
    }
    key_ = key;
    if (!keys_.insert(key).second) return stop(fmt::format("{} occurs twice", where()));
    if (state_ == HeaderState::kMetadata || key == "dtype" || key == "shape" ||
        key == "data_offsets") {
      return true;
    }
    return stop(fmt::format("{}: expected dtype, shape or data_offsets", where()));
  }

  bool end_object() override {
    if (state_ == HeaderState::kTensor && keys_.size() != 3) {
      key_.clear();
      return stop(fmt::format("{}: expected all of dtype, shape and data_offsets", where()));
    }
    state_ = state_ == HeaderState::kTop ? HeaderState::kEnd : HeaderState::kTop;
    return true;
  }

  bool start_array(std::size_t) override {
    if (state_ != HeaderState::kTensor || key_ == "dtype") return unexpected("an array");
    state_ = key_ == "shape" ? HeaderState::kShape : HeaderState::kOffsets;
    numbers_.clear();
    return true;
  }

  bool end_array() override {
    if (state_ == HeaderState::kShape) {
      entries.back().shape = Shape(numbers_);
    } else {
      if (numbers_.size() != 2) return stop(fmt::format("{}: expected two numbers", where()));
      entries.back().begin = numbers_[0];
      entries.back().end = numbers_[1];
    }
    state_ = HeaderState::kTensor;
    return true;
  }

  bool parse_error(std::size_t position, const std::string&,
                   const nlohmann::detail::exception& error) override {
    std::string_view why = error.what();
    const size_t colon = why.find(": ");
    return stop(fmt::format("the header is not valid JSON at byte {}: {}", position,
                            colon == why.npos ? why : why.substr(colon + 2)));
  }

 private:
  enum class HeaderState { kStart, kTop, kMetadata, kTensor, kShape, kOffsets, kEnd };

  std::string where() const {
    if (state_ == HeaderState::kStart || state_ == HeaderState::kEnd) return "the header";
    const std::string tensor = fmt::format("tensor \"{}\"", clip(name_));
    return key_.empty() ? tensor : fmt::format("{} key \"{}\"", tensor, clip(key_));
  }
  bool unexpected(std::string_view found) {
    return stop(fmt::format("{}: {} is not expected here", where(), found));
  }
  bool stop(std::string why) {
    problem = std::move(why);
    return false;
  }

  HeaderState state_ = HeaderState::kStart;
  std::string name_, key_;
  std::unordered_set<std::string> names_, keys_;
  std::vector<int64_t> numbers_;
};

void check_entry(const SafetensorsEntry& entry, const std::string& what) {
  const int64_t element_bytes = safetensors_element_bytes(entry.dtype);
  if (element_bytes == 0) {
    fail(ErrorCode::kInvalid, "{}: tensor \"{}\" has dtype \"{}\": not a dtype that is known", what,
         clip(entry.name), clip(entry.dtype));
  }
  const std::optional<int64_t> bytes = checked_bytes(entry.shape, element_bytes);
  if (!bytes) {
    fail(ErrorCode::kInvalid, "{}: tensor \"{}\" has shape {}: too large to be real", what,
         clip(entry.name), entry.shape.to_string());
  }
  if (entry.end < entry.begin || entry.end - entry.begin != *bytes) {
    fail(ErrorCode::kInvalid,
         "{}: tensor \"{}\" has data_offsets [{}, {}], but {} of {} takes {} bytes", what,
         clip(entry.name), entry.begin, entry.end, entry.shape.to_string(), entry.dtype, *bytes);
  }
}

// Sorts the entries by offset and refuses holes, overlaps and bytes outside all entries.
void check_coverage(std::vector<SafetensorsEntry>& entries, int64_t data_bytes,
                    const std::string& what) {
  std::stable_sort(entries.begin(), entries.end(), [](const auto& a, const auto& b) {
    return std::pair(a.begin, a.end) < std::pair(b.begin, b.end);
  });
  int64_t expected = 0;
  for (const SafetensorsEntry& entry : entries) {
    if (entry.begin != expected) {
      fail(ErrorCode::kInvalid,
           "{}: tensor \"{}\" starts at data byte {}, expected {}: byte ranges must have no holes "
           "and no overlaps",
           what, clip(entry.name), entry.begin, expected);
    }
    expected = entry.end;
  }
  if (expected != data_bytes) {
    fail(ErrorCode::kInvalid,
         "{}: its tensors take {} bytes, but {} bytes follow the header: the file is {}", what,
         expected, data_bytes, expected > data_bytes ? "truncated" : "not covered by its tensors");
  }
}

int64_t header_length(std::span<const std::byte> file, const std::string& what) {
  if (file.size() < kLengthBytes) {
    fail(ErrorCode::kInvalid, "{}: {} bytes are too few for a safetensors file", what, file.size());
  }
  uint64_t length = 0;
  std::memcpy(&length, file.data(), kLengthBytes);
  if (length > static_cast<uint64_t>(kMaxSafetensorsHeaderBytes)) {
    fail(ErrorCode::kInvalid, "{}: a header of {} bytes is announced, expected at most {}", what,
         length, kMaxSafetensorsHeaderBytes);
  }
  if (length > file.size() - kLengthBytes) {
    fail(ErrorCode::kInvalid,
         "{}: a header of {} bytes is announced, but the file has {} bytes: truncated, or not a "
         "safetensors file",
         what, length, file.size());
  }
  return static_cast<int64_t>(length);
}

}  // namespace

int64_t safetensors_element_bytes(std::string_view dtype) {
  for (const KnownDType& known : kDTypes) {
    if (known.name == dtype) return known.bytes;
  }
  return 0;
}

std::optional<DType> from_safetensors_dtype(std::string_view dtype) {
  for (const KnownDType& known : kDTypes) {
    if (known.name == dtype) return known.dtype;
  }
  return std::nullopt;
}

std::string_view to_safetensors_dtype(DType dtype) {
  for (const KnownDType& known : kDTypes) {
    if (known.dtype == dtype) return known.name;
  }
  fail(ErrorCode::kInternal, "dtype {} has no safetensors name", dtype_name(dtype));
}

SafetensorsHeader parse_safetensors_header(std::span<const std::byte> file,
                                           const std::string& what) {
  return parse_safetensors_header(file, static_cast<int64_t>(file.size()), what);
}

SafetensorsHeader parse_safetensors_header(std::span<const std::byte> head, int64_t file_bytes,
                                           const std::string& what) {
  refuse_lfs_pointer({reinterpret_cast<const char*>(head.data()), head.size()}, what);
  const int64_t length = header_length(head, what);
  const char* text = reinterpret_cast<const char*>(head.data()) + kLengthBytes;
  if (length == 0 || text[0] != '{') {
    fail(ErrorCode::kInvalid, "{}: the header does not start with '{{': not a safetensors file",
         what);
  }
  // The parser would take a NUL for the end of its input, whatever follows.
  if (std::memchr(text, 0, static_cast<size_t>(length)) != nullptr) {
    fail(ErrorCode::kInvalid, "{}: the header is not valid JSON: it holds a NUL byte", what);
  }
  HeaderHandler handler;
  if (!Json::sax_parse(text, text + length, &handler)) {
    fail(ErrorCode::kInvalid, "{}: {}", what, handler.problem);
  }
  SafetensorsHeader header{std::move(handler.entries), std::move(handler.metadata),
                           kLengthBytes + length};
  for (const SafetensorsEntry& entry : header.entries) check_entry(entry, what);
  check_coverage(header.entries, file_bytes - header.data_begin, what);
  for (SafetensorsEntry& entry : header.entries) {
    entry.begin += header.data_begin;
    entry.end += header.data_begin;
  }
  return header;
}

}  // namespace skein
