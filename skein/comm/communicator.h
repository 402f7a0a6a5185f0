// Collectives between the ranks of a group: one interface for every transport.
//
// Order     A sum has a fixed order: the terms of ranks 0, 1, 2, ... are added by the binary tree
//           (a0 + a1) + (a2 + a3), in fp32 for bf16 (rounded once at the end), in the dtype for
//           f32, f64 and i32. The bits depend on nothing else, not even on who arrives first. In a
//           group whose members hold branches of a tree of more leaves, by that tree.
// Memory    belongs to the caller and to the device: no call allocates, and none assumes that the
//           host can read it, except in the host backends (local, gloo). Sums need `scratch` of
//           collective_scratch_bytes.
// Overlap   start() posts what can be posted and returns; wait() completes the collective. In
//           between, the buffers belong to the communicator. Every rank of a group starts its
//           collectives in the same order; sends and receives of a pair of ranks are matched in
//           order, too. Waits may come in any order within a group; over several groups, all ranks
//           wait for all-reduces in one common order. A send may complete only once its peer
//           started the receive and waits for something: neighbours that exchange must start both
//           before waiting for either. A call that throws no longer uses any buffer.
// Queues    On a device that is asynchronous to the host (nccl) neither call blocks the host:
//           start() orders the collective, in a queue of its own, after what is in the device's
//           queue, and wait() orders it before what enters the device's queue next.
// Cost      bytes that a rank sends, n ranks, x bytes whole: all-gather, reduce-scatter and
//           all-to-all (n-1)/n x, all-reduce 2 (n-1)/n x, broadcast (n-1) x at the root, send x.
//           Where n does not divide a tensor, nothing is sent for ranges past its end; the share of
//           rank r in an all-reduce, too, is the r-th range of ceil(elements / n).
// Errors    Error{kPeerLost}: at once where a peer's process ended, at the deadline where it is
//           silent; names operation, label, step, peer and what to do. Afterwards the whole world
//           is dead: every later call fails at once with the same cause. Error{kInternal}: a
//           malformed call. Where wait() does not block, the deadline begins when the device
//           reaches the wait. After a loss all collectives of the device are aborted and its later
//           results are invalid: the error is thrown by check(), which the host calls after it
//           synchronized with the device and before it uses a result, or by the next start() or
//           wait() if that comes earlier.
// Threads   start and wait belong to one thread; different groups may be used by different threads.
//           Any thread may call end().
// Source    Patarasuk and Yuan 2009 (bytes of ring algorithms); Demmel and Nguyen 2015 (order)
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "skein/tensor/dtype.h"

namespace skein {

class JobSecret;
class KeyValueStore;

enum class CollectiveKind : uint8_t {
  kAllGather,      // every rank's share -> the whole on every rank
  kReduceScatter,  // a whole term on every rank -> the summed share of each
  kAllReduce,      // a whole term on every rank -> the whole sum on every rank
  kAllToAll,       // block p of rank r -> block r of rank p
  kBroadcast,      // `peer` is the root
  kSend,           // `peer` receives
  kReceive,        // `peer` sends
  kBarrier,
};
std::string_view collective_name(CollectiveKind kind);  // "all-gather"

// One tensor of a collective; the tensors of one call travel together. Rank r's share is elements
// [min(r share, elements), min((r + 1) share, elements)): equal shares, except at the end.
struct CollectivePart {
  const void* input = nullptr;
  void* output = nullptr;
  int64_t elements = 0;  // of the whole (all-to-all: of all blocks; send, receive: of the message)
  int64_t share = 0;     // all-gather, reduce-scatter, all-to-all (the block); 0 elsewhere
};
// In place: the share of an all-gather or reduce-scatter may lie at its own place in the whole, and
// an all-reduce may have input == output. size x share covers the elements, and in an all-to-all
// equals them. In a broadcast, the root's output may be null.

struct Collective {
  CollectiveKind kind = CollectiveKind::kBarrier;
  DType dtype = DType::kF32;
  std::vector<CollectivePart> parts;
  int peer = 0;             // rank in the group
  void* scratch = nullptr;  // collective_scratch_bytes
  double timeout_s = 0;     // of the wait; 0: the world's timeout
  std::string_view label;   // for messages: "layers.3 l3.attn_norm"; must outlive wait()
};

// Scratch that a reduce-scatter or all-reduce over `size` ranks needs for the others' terms.
int64_t collective_scratch_bytes(const Collective& collective, int size);

// Bytes that rank `rank` of `size` sends; the plan and the counters agree on them.
int64_t collective_sent_bytes(const Collective& collective, int rank, int size);

struct WireCount {
  int64_t calls = 0;
  int64_t sent_bytes = 0;
  int64_t received_bytes = 0;
};

class Communicator {
 public:
  using Ticket = int64_t;
  virtual ~Communicator() = default;

  virtual int rank() const = 0;
  virtual int size() const = 0;
  virtual const std::string& name() const = 0;  // "world", or the mesh axis: "dp"

  virtual Ticket start(const Collective& collective) = 0;
  virtual void wait(Ticket ticket) = 0;
  void run(const Collective& collective) { wait(start(collective)); }
  // Sees that the all-reduces that started before this ticket go on to their second half beside
  // what the caller does next. Where the host moves data, it waits for their terms, so until all
  // ranks have started them, and adds them.
  virtual void advance_before(Ticket) {}

  // The group of these members (ranks of this group, ascending, this one included). Every member
  // must call it; other ranks need not. `leaves`: of the tree by which the group adds, where its
  // members have branches of one with more leaves than members (comm/branches.h); 0: one each.
  virtual std::unique_ptr<Communicator> group(const std::vector<int>& members,
                                              const std::string& name, int64_t leaves = 0) = 0;

  // Sets the training step that error messages name, for all groups of the world.
  virtual void set_step(int64_t step) = 0;
  // Calls and bytes of a kind since construction, counted as they are handed to the transport.
  virtual WireCount count(CollectiveKind kind) const = 0;

  // Announces collectives of this kind and with this peer. Announced peers are connected before the
  // first start(), whatever the order in which ranks start. A collective that was not announced
  // connects in its start(), which then blocks until the ranks that take part have started it, too.
  virtual void prepare(const Collective&) {}

  // Throws if the world is dead or a process of the group ended; does not block. `during`: what the
  // message names.
  virtual void check(const Collective& /*during*/) {}
  // Ends the world for all its ranks: their calls fail with this cause. The first cause is kept.
  virtual void end(const std::string& /*cause*/) noexcept {}
};

struct WorldOptions {
  int rank = 0;
  int size = 1;
  // A folder that all ranks see, new for this start, through which they find each other.
  std::string rendezvous;
  // They find each other here instead, and `rendezvous` is only its name; null: in the folder.
  std::shared_ptr<KeyValueStore> store = nullptr;
  // What ranks prove to each other to know before they talk; null: they believe who connects, and
  // share no memory.
  std::shared_ptr<const JobSecret> secret = nullptr;
  double timeout_s = 60;        // of one wait()
  double start_timeout_s = 60;  // for all ranks to arrive
};

// A communicator of all ranks, over Gloo, or `local` for a single rank. Ranks on one host meet on
// the loopback interface, otherwise on the interface of the host name; SKEIN_NETWORK_INTERFACE=eth1
// overrides both. With a secret, messages between ranks of one host go through shared memory;
// SKEIN_SHARED_MEMORY=off prevents it. SIGPIPE is ignored from then on, so that a lost peer is an
// error and not a signal.
// Errors  Error{kPeerLost} naming the ranks that did not arrive; Error{kUsage} for a rank that came
//         twice, another world size, an interface that does not exist
std::unique_ptr<Communicator> make_world(const WorldOptions& options);

enum class Sums : uint8_t {
  kCanonical,  // in the order above: the same bits on every transport and layout
  kFast,  // summed by the network where shares are equal, in an order of its choice (ranks, size,
          // topology) and with bf16 rounded in between. Other layouts give other bits
};

struct DeviceWorldOptions {
  void* stream = nullptr;  // the compute queue of the current device
  double timeout_s = 60;   // of one wait, and of connecting all members of a group
  Sums sums = Sums::kCanonical;
};

}  // namespace skein
