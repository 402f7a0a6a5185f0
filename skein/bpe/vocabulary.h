// The ids of pieces by their bytes, in flat memory: one look at a table, one at the bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace skein::bpe {

class Vocabulary {
 public:
  void reserve(size_t num_pieces);
  // A piece that is there already keeps its id. At most 4 GiB of pieces.
  void add(std::string_view piece, int32_t id);
  // -1: it is not there.
  int32_t find(std::string_view piece) const;

  // visit(piece, id), in the order in which they were added
  template <class Visit>
  void for_each(Visit&& visit) const {
    for (const uint32_t slot : order_) {
      visit(std::string_view(bytes_).substr(slots_[slot].begin, slots_[slot].size),
            slots_[slot].id);
    }
  }

 private:
  struct Slot {
    uint32_t hash = 0, begin = 0, size = 0;
    int32_t id = -1;
  };

  size_t place_of(std::string_view piece, uint32_t hash) const;

  std::vector<Slot> slots_ = std::vector<Slot>(16);  // a power of two, at most half full
  std::vector<uint32_t> order_;
  std::string bytes_;
};

}  // namespace skein::bpe
