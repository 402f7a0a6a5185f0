#include "skein/prepare/dealer.h"

#include <algorithm>

#include "skein/base/error.h"
#include "skein/base/hash.h"

namespace skein {
namespace {

constexpr size_t kSplitBytes = size_t{1} << 20;  // documents from this size on are cut in two

bool is_inside_character(char byte) { return (static_cast<uint8_t>(byte) & 0xc0) == 0x80; }

}  // namespace

std::optional<size_t> cut_near(std::string_view text, size_t position) {
  if (text.size() < 2) return std::nullopt;
  position = std::clamp<size_t>(position, 1, text.size() - 1);
  const size_t newline = text.substr(0, position).rfind('\n');
  if (newline != std::string_view::npos && newline > position / 2) return newline + 1;
  size_t cut = position;
  while (cut > 0 && is_inside_character(text[cut])) --cut;
  if (cut > 0) return cut;
  cut = position;
  while (cut < text.size() && is_inside_character(text[cut])) ++cut;
  if (cut < text.size()) return cut;
  return std::nullopt;
}

Dealer::Dealer(const fs::path& out, const fs::path& validation_out, double validation_fraction)
    : fraction_(validation_fraction), training_(out) {
  if (!validation_out.empty()) validation_.emplace(validation_out);
}

void Dealer::add(std::string_view text) {
  const int64_t index = num_documents_++;
  num_bytes_ += static_cast<int64_t>(text.size());
  if (!validation_) return training_.append(text);
  if (is_held_out(index)) return validation_->append(text);
  if (text.size() >= kSplitBytes) {
    const auto held = static_cast<size_t>(static_cast<double>(text.size()) * fraction_);
    if (held > 0 && split(text, text.size() - std::min(held, text.size()))) return;
  }
  // The last document is kept back: it is split if nothing else was held out.
  flush_last();
  last_.assign(text);
}

void Dealer::commit() {
  if (validation_) {
    if (validation_->num_documents() == 0) {
      const double wanted = fraction_ * static_cast<double>(num_bytes_);
      const double most = std::max(1.0, static_cast<double>(last_.size()) / 2);
      const auto held = static_cast<size_t>(std::clamp(wanted, 1.0, most));
      if (last_.size() > held && split(last_, last_.size() - held)) last_.clear();
    }
    flush_last();
    if (validation_->num_documents() == 0 || training_.num_documents() == 0) {
      fail(ErrorCode::kInvalid,
           "{} documents of {} bytes in all leave nothing for {} at a validation fraction of {}: "
           "expected text for both, or no --validation-out",
           num_documents_, num_bytes_, training_.num_documents() == 0 ? "training" : "validation",
           fraction_);
    }
    validation_->commit();
  }
  training_.commit();
}

bool Dealer::is_held_out(int64_t index) const {
  const uint64_t hash = hash_name({reinterpret_cast<const char*>(&index), sizeof(index)});
  return static_cast<double>(hash >> 11) * 0x1p-53 < fraction_;
}

bool Dealer::split(std::string_view text, size_t position) {
  const std::optional<size_t> cut = cut_near(text, position);
  if (!cut) return false;
  training_.append(text.substr(0, *cut));
  validation_->append(text.substr(*cut));
  return true;
}

void Dealer::flush_last() {
  if (!last_.empty()) training_.append(last_);
  last_.clear();
}

}  // namespace skein
