// Collectives between the ranks of a group, one interface over every transport.
//
// Order     A sum has a fixed order: the terms of ranks 0, 1, 2, … are added by the binary tree
//           (a0 + a1) + (a2 + a3), in fp32 for bf16 (rounded once at the end), in the dtype for
//           f32, f64 and i32. The bits depend on nothing else: not on who arrives first.
// Memory    belongs to the caller and to the device: nothing here allocates per call or assumes
//           that the host can read it, but for the backends that say so (local, gloo). Sums need
//           `scratch`, of collective_scratch_bytes.
// Overlap   start() posts what can be posted and returns; wait() ends the collective. Between the
//           two the buffers belong to the communicator. Every rank of a group starts its
//           collectives in the same order; sends and receives of a pair are matched in order as
//           well. Waits may come in any order within a group; over several groups, waits of
//           all-reduces come in an order that all ranks share. A send may end only once its peer
//           started the receive: neighbours that exchange start both before they wait for either. A
//           call that throws has let go of all buffers.
// Queues    On a device that runs behind the host (nccl) neither call waits for it: start() puts
//           the collective behind what is in the device's queue, in a queue of its own, and wait()
//           puts it in front of what comes into the device's queue next.
// Cost      bytes that a rank sends, n ranks, x bytes whole: all-gather, reduce-scatter and
//           all-to-all (n-1)/n x, all-reduce 2 (n-1)/n x, broadcast (n-1) x at the root, send x.
//           Ranges past the end of a tensor that n does not divide are not sent: rank r's share of
//           an all-reduce, too, is the r-th range of ceil(elements / n).
// Errors    Error{kPeerLost}: at once where a peer's process ended, at the deadline where it is
//           silent; names operation, label, step, peer and what to do. After one, the whole world
//           is dead: every later call fails at once with the same cause. Error{kInternal}: a
//           malformed call. Where wait() does not wait, the deadline begins when the device comes
//           to the wait. Then all its collectives are cut short, and what it computes from there on
//           is not valid: the error comes from check(), which the host calls after it waited for
//           the device and before it uses a result, or from the next start() or wait() if that is
//           earlier.
// Threads   start and wait belong to one thread; different groups may be used by different threads.
//           end() may be called by any.
// Source    Patarasuk and Yuan 2009 (bytes of ring algorithms); Demmel and Nguyen 2015 (order)
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "skein/tensor/dtype.h"

namespace skein {

enum class CollectiveKind : uint8_t {
  kAllGather,      // every rank's share → the whole on every rank
  kReduceScatter,  // a whole term on every rank → the summed share of each
  kAllReduce,      // a whole term on every rank → the whole sum on every rank
  kAllToAll,       // block p of rank r → block r of rank p
  kBroadcast,      // `peer` is the root
  kSend,           // `peer` receives
  kReceive,        // `peer` sends
  kBarrier,
};
std::string_view collective_name(CollectiveKind kind);  // "all-gather"

// One tensor of a collective; several of one call travel together. Rank r's share is elements
// [min(r share, elements), min((r + 1) share, elements)): shares are equal but for the end.
struct CollectivePart {
  const void* input = nullptr;
  void* output = nullptr;
  int64_t elements = 0;  // of the whole (all-to-all: of all blocks; send, receive: of the message)
  int64_t share = 0;     // all-gather, reduce-scatter, all-to-all (the block); 0 elsewhere
};
// In place: the share of an all-gather or reduce-scatter may lie at its own place in the whole, and
// an all-reduce may have input == output. size x share covers the elements; in an all-to-all it
// equals them. Broadcast: the root's output may be null.

struct Collective {
  CollectiveKind kind = CollectiveKind::kBarrier;
  DType dtype = DType::kF32;
  std::vector<CollectivePart> parts;
  int peer = 0;             // rank in the group
  void* scratch = nullptr;  // collective_scratch_bytes
  double timeout_s = 0;     // of its wait; 0: the world's
  std::string_view label;   // for messages: "layers.3 l3.attn_norm"; must outlive wait()
};

// What a reduce-scatter or all-reduce over `size` ranks needs to receive the others' terms.
int64_t collective_scratch_bytes(const Collective& collective, int size);

// What rank `rank` of `size` hands to the transport; the plan and the counters agree on it.
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

  // The group of these members (ranks of this group, ascending, this one among them). Every member
  // calls it; nobody else needs to.
  virtual std::unique_ptr<Communicator> group(const std::vector<int>& members,
                                              const std::string& name) = 0;

  // The training step that messages name; of all groups of the world.
  virtual void set_step(int64_t step) = 0;
  // By kind, since construction; counted by what is handed to the transport.
  virtual WireCount count(CollectiveKind kind) const = 0;

  // Says that collectives of this kind, and with this peer, will come. What has been announced is
  // connected before the first start(), whatever the order in which ranks start; what has not, when
  // it is started, and then start() waits for the ranks that take part.
  virtual void prepare(const Collective&) {}

  // Throws where the world is dead, or one of the group's processes ended: does not wait.
  // `during`: what the message names.
  virtual void check(const Collective& /*during*/) {}
  // Ends the world for all its ranks; their calls fail with this cause. The first cause stays.
  virtual void end(const std::string& /*cause*/) noexcept {}
};

struct WorldOptions {
  int rank = 0;
  int size = 1;
  // A folder that all ranks see, fresh for this start: they find each other through it.
  std::string rendezvous;
  double timeout_s = 60;        // of one wait()
  double start_timeout_s = 60;  // for all ranks to arrive
};

// All ranks, over Gloo; `local`, which moves nothing, where there is one. On one host they meet on
// the loopback interface, else on the host name's; SKEIN_NETWORK_INTERFACE=eth1 overrides both.
// SIGPIPE is ignored from then on: a peer that went away is an error here, not a signal.
// Errors  Error{kPeerLost} naming the ranks that did not arrive; Error{kUsage} for a rank that came
//         twice, another world size, an interface that is not there
std::unique_ptr<Communicator> make_world(const WorldOptions& options);

enum class Sums : uint8_t {
  kCanonical,  // in the order above: the same bits on every transport and layout
  kFast,       // added by the network, where shares are equal: in the order that it chooses by
               // ranks, size and topology, bf16 rounded between. Other layouts give other bits
};

struct DeviceWorldOptions {
  void* stream = nullptr;  // the queue of the current device, which computes
  double timeout_s = 60;   // of one wait, and for all members of a group to connect
  Sums sums = Sums::kCanonical;
};

}  // namespace skein
