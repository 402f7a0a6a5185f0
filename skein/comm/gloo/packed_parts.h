// Packs collectives of many small tensors, such as the gradients of a bucket over hundreds of
// ranks: all that goes to one peer is one message, without gaps, part after part. The bytes on the
// wire stay the same; terms of a sum lie in the collective's scratch, peer after peer.
//
// Cost    one copy of what is sent, and of what a gather or second phase receives
// Memory  PackingMemory: as much again as the whole of each collective in flight
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "skein/comm/communicator.h"

namespace skein {

// Memory that is reused from one collective to the next.
class PackingMemory {
 public:
  using Block = std::vector<char>;
  // Announces collectives of so many bytes; allocates memory for a few of them now.
  void expect(int64_t bytes);
  std::unique_ptr<Block> take(int64_t bytes);
  void give_back(std::unique_ptr<Block> block) { free_.push_back(std::move(block)); }

 private:
  int64_t expected_bytes_ = 0;
  std::vector<std::unique_ptr<Block>> free_;
};

class PackedParts {
 public:
  // Several parts, of which each rank's share is small. Gives the same answer on every rank.
  static bool is_worth(const Collective& collective, int size);
  static int64_t bytes(const Collective& collective);  // of packing memory

  // `memory` must outlive the object.
  PackedParts(const Collective& collective, int rank, int size, PackingMemory& memory);
  ~PackedParts() { memory_.give_back(std::move(block_)); }
  PackedParts(const PackedParts&) = delete;
  PackedParts& operator=(const PackedParts&) = delete;

  // Packs what this rank sends to `peer`: that peer's shares of the inputs.
  std::span<char> pack_for(int peer);
  // Where the term of `peer` arrives, and its part `i`.
  std::span<char> term_of(int peer) const;
  const char* term_of(int peer, size_t i) const;
  // Packs this rank's shares: of a gather's inputs, otherwise of the sums.
  void pack_own();
  std::span<char> own() const;
  // Where the shares of `peer` arrive; unpack() copies them all to the outputs.
  std::span<char> of_peer(int peer) const;
  void unpack();

 private:
  int64_t share_bytes(int rank) const;  // of all parts

  const Collective& collective_;
  int rank_, size_;
  PackingMemory& memory_;
  std::vector<int64_t> begin_;     // by rank: where its shares begin in a packed whole
  std::vector<int64_t> own_part_;  // by part: where it begins in this rank's shares
  std::unique_ptr<PackingMemory::Block> block_;
  char *sends_ = nullptr, *gathered_ = nullptr;  // in the block
};

}  // namespace skein
