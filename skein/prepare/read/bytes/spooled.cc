#include "skein/prepare/read/bytes/spooled.h"

#include <algorithm>

#include "skein/base/error.h"

namespace skein {
namespace {

class MappedRanges : public RangeReader {
 public:
  MappedRanges(std::span<const std::byte> bytes, const std::string& name)
      : bytes_(bytes), name_(name) {}
  std::string name() const override { return name_; }
  int64_t num_bytes() const override { return static_cast<int64_t>(bytes_.size()); }
  void read(int64_t begin, std::span<char> out) override {
    if (begin < 0 || static_cast<size_t>(begin) + out.size() > bytes_.size()) {
      fail(ErrorCode::kInternal, "{}: bytes from {} on asked for: there are {}", name_, begin,
           bytes_.size());
    }
    const auto part = bytes_.subspan(static_cast<size_t>(begin), out.size());
    std::copy_n(reinterpret_cast<const char*>(part.data()), part.size(), out.data());
  }

 private:
  std::span<const std::byte> bytes_;
  std::string name_;
};

}  // namespace

Spooled::Spooled(ByteSource& source, const fs::path& folder, const std::string& name)
    : name_(name), spool_((folder.empty() ? fs::temp_directory_path() : folder) / "skein_member") {
  std::string buffer(size_t{1} << 20, '\0');
  while (const size_t count = source.read(buffer)) {
    spool_.append(std::string_view(buffer).substr(0, count));
  }
  spool_.flush();
  if (spool_.num_bytes() > 0) mapped_ = std::make_unique<Mapped>(spool_);
}

std::span<const std::byte> Spooled::bytes() const {
  static constexpr std::byte kNone{};
  if (!mapped_) return {&kNone, 0};
  return std::as_bytes(std::span(mapped_->data(), static_cast<size_t>(mapped_->size())));
}

std::unique_ptr<RangeReader> Spooled::ranges() const {
  return std::make_unique<MappedRanges>(bytes(), name_);
}

}  // namespace skein
