// Collectives over NCCL, in the memory of GPUs. Nothing is moved or added by the host, and the
// device is waited for nowhere.
//
// Sums   canonical: the others' terms of a share are received into scratch, a kernel adds them in
//        the fixed order, an all-reduce gathers the shares. Within a node that is what a ring
//        moves; between nodes of g ranks it is g times as much
// Ends   destroying a group waits until all members have ended what they started. Where an error
//        unwinds the stack it does not wait
// Source NVIDIA, NCCL user guide 2.28: group calls, point-to-point communication, fault tolerance
#pragma once

#include <array>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "skein/comm/communicator.h"
#include "skein/comm/nccl/nccl_queue.h"
#include "skein/comm/nccl/nccl_world.h"
#include "skein/comm/tree_sum.h"

namespace skein {

// The ranks of `host` once more, for memory of their GPUs; NCCL is loaded where there are several.
// `host`, which must outlive it and stay the caller's, carries what ranks tell each other beside,
// and tells of processes that end; a world that ends takes it along.
// Errors  Error{kUnsupported}: no NCCL on this machine, and what to install
std::unique_ptr<Communicator> make_nccl_world(Communicator& host,
                                              const DeviceWorldOptions& options);

class NcclCommunicator : public Communicator {
 public:
  // `world_ranks` ascending, this process's among them; one is enough. `leaves` as in group().
  NcclCommunicator(std::shared_ptr<NcclWorld> world, std::vector<int> world_ranks, std::string name,
                   int64_t leaves = 0);

  int rank() const override { return rank_; }
  int size() const override { return static_cast<int>(world_ranks_.size()); }
  const std::string& name() const override { return name_; }
  void prepare(const Collective& collective) override;
  Ticket start(const Collective& collective) override;
  void wait(Ticket ticket) override;
  std::unique_ptr<Communicator> group(const std::vector<int>& members, const std::string& name,
                                      int64_t leaves = 0) override;
  void check(const Collective&) override { world_->check_alive(); }
  void end(const std::string& cause) noexcept override { world_->end(cause); }
  void set_step(int64_t step) override { world_->set_step(step); }
  WireCount count(CollectiveKind kind) const override { return counts_[static_cast<size_t>(kind)]; }

 private:
  struct Pending {
    NcclQueue* queue;
    NcclQueue::Op* op;
  };
  NcclQueue& queue_of(const Collective& collective);
  std::unique_ptr<NcclQueue> new_queue(std::vector<int> ranks, NcclQueue::Traffic traffic,
                                       const std::string& label);
  void count_bytes(const Collective& collective);

  std::shared_ptr<NcclWorld> world_;
  std::vector<int> world_ranks_;
  std::string name_;
  std::string queue_name_;
  TreePairs pairs_;
  int rank_ = 0;
  std::unique_ptr<NcclQueue> collectives_;
  std::map<std::pair<int, int>, std::unique_ptr<NcclQueue>> messages_;  // by sender and receiver
  Ticket next_ticket_ = 0;
  std::map<Ticket, Pending> pending_;
  std::array<WireCount, 8> counts_{};
};

}  // namespace skein
