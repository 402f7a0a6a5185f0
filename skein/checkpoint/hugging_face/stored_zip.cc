#include "skein/checkpoint/hugging_face/stored_zip.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <string_view>
#include <vector>

#include "skein/base/error.h"
#include "skein/base/text/visible_text.h"

namespace skein {
namespace {

constexpr uint32_t kLocal = 0x04034b50, kCentral = 0x02014b50, kEnd = 0x06054b50,
                   kEnd64 = 0x06064b50, kLocator64 = 0x07064b50;
constexpr int64_t kLocalBytes = 30, kCentralBytes = 46, kEndBytes = 22, kEnd64Bytes = 56,
                  kLocator64Bytes = 20, kMaxComment = 0xffff;
constexpr int64_t kMaxFiles = 1'000'000;
constexpr uint32_t kSeeZip64 = 0xffffffff;

class ZipTable {
 public:
  ZipTable(std::span<const std::byte> file, const std::string& what) : file_(file), what_(what) {}

  std::map<std::string, StoredRange, std::less<>> parse() {
    find_end();
    int64_t at = begin_;
    for (int64_t i = 0; i < count_; ++i) at = read_entry(at);
    if (at != end_) refuse("its directory has other bytes than its entries take");
    refuse_overlaps();
    return std::move(found_);
  }

 private:
  [[noreturn]] void refuse(const std::string& why) const {
    fail(ErrorCode::kInvalid, "{}: not a whole zip file: {}", what_, why);
  }

  template <typename Word>
  Word word(int64_t at) const {
    const auto size = static_cast<int64_t>(file_.size());
    if (at < 0 || at > size - static_cast<int64_t>(sizeof(Word))) refuse("a record is cut off");
    Word value;
    std::memcpy(&value, file_.data() + at, sizeof(Word));
    return value;
  }
  // A size or an offset; none can be more than the file's size.
  int64_t size_at(int64_t at) const {
    const auto value = word<uint64_t>(at);
    if (value > file_.size()) refuse(fmt::format("a size of {} bytes is announced", value));
    return static_cast<int64_t>(value);
  }
  std::string_view text(int64_t at, int64_t bytes) const {
    if (bytes > static_cast<int64_t>(file_.size()) - at) refuse("a name is cut off");
    return {reinterpret_cast<const char*>(file_.data()) + at, static_cast<size_t>(bytes)};
  }

  void find_end() {
    const auto size = static_cast<int64_t>(file_.size());
    int64_t at = size - kEndBytes;
    const int64_t first = std::max<int64_t>(0, at - kMaxComment);
    while (at >= first &&
           (word<uint32_t>(at) != kEnd || at + kEndBytes + word<uint16_t>(at + 20) != size)) {
      --at;
    }
    if (at < first) refuse("it has no end record: the file is cut off, or of another format");
    uint64_t disks = word<uint16_t>(at + 4) | word<uint16_t>(at + 6);
    count_ = word<uint16_t>(at + 10);
    int64_t bytes = word<uint32_t>(at + 12);
    begin_ = word<uint32_t>(at + 16);
    const int64_t locator = at - kLocator64Bytes;
    if (locator >= 0 && word<uint32_t>(locator) == kLocator64) {
      at = size_at(locator + 8);
      if (at > locator - kEnd64Bytes || word<uint32_t>(at) != kEnd64) {
        refuse("its zip64 end record is not where it should be");
      }
      disks = word<uint32_t>(at + 16) | word<uint32_t>(at + 20);
      count_ = size_at(at + 32);
      bytes = size_at(at + 40);
      begin_ = size_at(at + 48);
    }
    if (disks != 0) refuse("it is spread over several disks");
    if (bytes > at || begin_ > at - bytes) refuse("its directory lies outside it");
    end_ = begin_ + bytes;
    if (count_ > kMaxFiles || count_ > bytes / kCentralBytes) {
      refuse(fmt::format("a directory of {} files in {} bytes is announced", count_, bytes));
    }
  }

  // Returns where the next one begins.
  int64_t read_entry(int64_t at) {
    if (at > end_ - kCentralBytes || word<uint32_t>(at) != kCentral) {
      refuse("an entry of its directory is none");
    }
    const int64_t name_bytes = word<uint16_t>(at + 28), extra_bytes = word<uint16_t>(at + 30);
    const int64_t next = at + kCentralBytes + name_bytes + extra_bytes + word<uint16_t>(at + 32);
    if (next > end_) refuse("an entry of its directory is cut off");
    const std::string_view name = text(at + kCentralBytes, name_bytes);
    const std::string shown = visible_text(name, 100);
    if ((word<uint16_t>(at + 8) & 1) != 0) {
      fail(ErrorCode::kUnsupported, "{}: {} in it is encrypted", what_, shown);
    }
    if (word<uint16_t>(at + 10) != 0) {
      fail(ErrorCode::kUnsupported, "{}: {} in it is compressed, which torch.save never does",
           what_, shown);
    }
    Sizes sizes{word<uint32_t>(at + 24), word<uint32_t>(at + 20), word<uint32_t>(at + 42)};
    take_zip64(at + kCentralBytes + name_bytes, extra_bytes, sizes);
    if (sizes.stored != sizes.original) refuse(fmt::format("{} has two sizes", shown));
    add(name, shown, sizes);
    return next;
  }

  struct Sizes {
    int64_t original = 0, stored = 0, local = 0;
  };

  // Fields that are full stand in the zip64 record, in this order.
  void take_zip64(int64_t at, int64_t bytes, Sizes& sizes) const {
    const int64_t end = at + bytes;
    std::vector<int64_t*> full;
    for (int64_t* field : {&sizes.original, &sizes.stored, &sizes.local}) {
      if (*field == kSeeZip64) full.push_back(field);
    }
    if (full.empty()) return;
    while (at <= end - 4) {
      const uint16_t id = word<uint16_t>(at), length = word<uint16_t>(at + 2);
      if (length > end - at - 4) break;
      if (id == 1 && length >= 8 * full.size()) {
        for (size_t i = 0; i < full.size(); ++i) {
          *full[i] = size_at(at + 4 + 8 * static_cast<int64_t>(i));
        }
        return;
      }
      at += 4 + length;
    }
    refuse("an entry of more than 4 GiB has no zip64 record");
  }

  void add(std::string_view name, const std::string& shown, const Sizes& sizes) {
    if (sizes.local > begin_ - kLocalBytes || word<uint32_t>(sizes.local) != kLocal) {
      refuse(fmt::format("{} is not where its directory says", shown));
    }
    const int64_t name_bytes = word<uint16_t>(sizes.local + 26);
    const int64_t begin = sizes.local + kLocalBytes + name_bytes + word<uint16_t>(sizes.local + 28);
    if (begin > begin_ || sizes.stored > begin_ - begin) {
      refuse(fmt::format("{} of {} bytes does not lie in it", shown, sizes.stored));
    }
    if (text(sizes.local + kLocalBytes, name_bytes) != name) {
      refuse(fmt::format("{} has another name where it lies", shown));
    }
    spans_.push_back({sizes.local, begin + sizes.stored});
    if (!found_.try_emplace(std::string(name), StoredRange{begin, begin + sizes.stored}).second) {
      refuse(fmt::format("{} is there twice", shown));
    }
  }

  void refuse_overlaps() {
    std::sort(spans_.begin(), spans_.end(),
              [](const StoredRange& a, const StoredRange& b) { return a.begin < b.begin; });
    for (size_t i = 1; i < spans_.size(); ++i) {
      if (spans_[i].begin < spans_[i - 1].end) refuse("files in it overlap");
    }
  }

  std::span<const std::byte> file_;
  const std::string& what_;
  int64_t begin_ = 0, end_ = 0, count_ = 0;  // of the central directory
  std::vector<StoredRange> spans_;           // with their local headers
  std::map<std::string, StoredRange, std::less<>> found_;
};

}  // namespace

std::map<std::string, StoredRange, std::less<>> parse_stored_zip(std::span<const std::byte> file,
                                                                 const std::string& what) {
  return ZipTable(file, what).parse();
}

}  // namespace skein
