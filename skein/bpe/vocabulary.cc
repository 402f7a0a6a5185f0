#include "skein/bpe/vocabulary.h"

#include <xxhash.h>

#include <bit>

namespace skein::bpe {
namespace {

uint32_t hash_of(std::string_view piece) {
  return static_cast<uint32_t>(XXH3_64bits(piece.data(), piece.size()));
}

}  // namespace

// Where the piece lies, or the free place where it would.
size_t Vocabulary::place_of(std::string_view piece, uint32_t hash) const {
  for (size_t at = hash & (slots_.size() - 1);; at = (at + 1) & (slots_.size() - 1)) {
    const Slot& slot = slots_[at];
    if (slot.id < 0) return at;
    if (slot.hash == hash && std::string_view(bytes_).substr(slot.begin, slot.size) == piece) {
      return at;
    }
  }
}

void Vocabulary::reserve(size_t num_pieces) {
  const size_t num_slots = std::bit_ceil(2 * num_pieces + 1);
  if (num_slots <= slots_.size()) return;
  std::vector<Slot> before(num_slots);
  before.swap(slots_);
  for (uint32_t& place : order_) {
    const Slot& slot = before[place];
    place = static_cast<uint32_t>(
        place_of(std::string_view(bytes_).substr(slot.begin, slot.size), slot.hash));
    slots_[place] = slot;
  }
}

void Vocabulary::add(std::string_view piece, int32_t id) {
  if (2 * (order_.size() + 1) > slots_.size()) reserve(slots_.size());
  const uint32_t hash = hash_of(piece);
  const size_t at = place_of(piece, hash);
  if (slots_[at].id >= 0) return;
  slots_[at] = {hash, static_cast<uint32_t>(bytes_.size()), static_cast<uint32_t>(piece.size()),
                id};
  bytes_ += piece;
  order_.push_back(static_cast<uint32_t>(at));
}

int32_t Vocabulary::find(std::string_view piece) const {
  return slots_[place_of(piece, hash_of(piece))].id;
}

}  // namespace skein::bpe
