// Finds silent corruption of the state: bits of weights, moments and masters that are not what they
// must be, though every op said that all is well.
//
// Vote    after an update, ranks that hold a copy of the same part of a tensor compare hashes, for
//         sums over ranks are the same to the bit on all of them; so are loss and norms. More than
//         half of the copies are right; where no bits have that many, all of them are suspects
// Chain   what one update left is what the next one must find, copies or not: this finds what
//         changes in between, on the rank itself. It does not see what an op gets wrong
// Ranks   vote() is collective
// Cost    a pass over the state in each call, by all threads of the device, and in vote() an
//         all-gather of 16 bytes and 16 more for each set of mesh axes that can hold copies. 16
//         bytes of memory for each 256 KiB of state
// Errors  kWrongBits on a rank that is a suspect, naming the tensor or the copies; kPeerLost on the
//         others after a vote
#pragma once

#include <span>
#include <string>
#include <utility>
#include <vector>

#include "skein/base/numbers/hash.h"
#include "skein/comm/communicator.h"
#include "skein/ir/program.h"
#include "skein/runtime/executor.h"
#include "skein/weights/state_tensors.h"

namespace skein {

// A rank's part of a tensor.
struct CheckedTensor {
  std::string name;
  // Bits of mesh axes: ranks that differ on these alone hold copies. Stages hold no copies.
  unsigned copied_over = 0;
  std::span<const std::byte> bytes;
};

std::vector<CheckedTensor> checked_tensors(const Executor& executor, const ProgramSet& programs,
                                           const std::vector<StateTensor>& tensors);

class StateCheck {
 public:
  // `world` and the tensors' bytes, in memory of the host, must outlive the check.
  StateCheck(Communicator& world, const Mesh& mesh, std::vector<CheckedTensor> tensors);

  // After an update, or once the state was read. `told`: numbers that are the same on all ranks.
  void vote(std::span<const double> told = {});
  // Before anything uses the state as vote() left it for the last time.
  void expect_unchanged();

  // Spent in both since the last call.
  double take_seconds() { return std::exchange(seconds_, 0.0); }

 private:
  struct HashedPiece {
    size_t tensor;
    size_t begin_bytes;  // in the rank's part of it
    std::span<const std::byte> bytes;
  };
  void hash(std::vector<Hash128>& hashes);
  Hash128 hash_of_copies(unsigned axes) const;
  void judge(std::span<const Hash128> all) const;

  Communicator& world_;
  const Mesh mesh_;
  const std::vector<CheckedTensor> tensors_;
  std::vector<HashedPiece> pieces_;
  std::vector<unsigned> votes_;        // the sets of axes to vote over; the last one is all of them
  std::vector<Hash128> left_, found_;  // of pieces: by the last update, and now
  double seconds_ = 0;
};

// The ranks whose hash differs from that of their group's majority, or all of a group that has
// none. A group: ranks that differ on the mesh axes whose bits are set in `axes`, and on no other.
// `hashes`: by rank.
std::vector<int> suspects(const Mesh& mesh, unsigned axes, std::span<const Hash128> hashes);

}  // namespace skein
