// What concerns all ranks of a large world, over a tree: rank r is connected with (r - 1) / fan_out
// and with fan_out r + 1 to fan_out r + fan_out. What all-to-all connections would do in one hop
// takes two ways through the tree; what the ranks tell each other there is small.
//
// barrier, broadcast, all-gather: the shares go up to rank 0, the whole comes down
// all-reduce     the terms as an all-gather; each rank adds all of them in the canonical order
// others         as GlooCommunicator, which connects with whoever takes part
// Overlap  start() does all of it
// Cost     an all-gather of x bytes whole: what lies below a rank up, fan_out x down
#pragma once

#include <memory>
#include <vector>

#include "skein/comm/gloo/gloo_communicator.h"

namespace skein {

class TreeCommunicator : public Communicator {
 public:
  // All ranks of `world`, which it connects with its neighbours.
  TreeCommunicator(std::shared_ptr<GlooWorld> world, int fan_out);

  int rank() const override { return all_.rank(); }
  int size() const override { return all_.size(); }
  const std::string& name() const override { return all_.name(); }
  Ticket start(const Collective& collective) override;
  void wait(Ticket ticket) override;
  std::unique_ptr<Communicator> group(const std::vector<int>& members,
                                      const std::string& name) override {
    return all_.group(members, name);
  }
  void prepare(const Collective& collective) override;
  void check(const Collective& during) override { all_.check(during); }
  void end(const std::string& cause) noexcept override { all_.end(cause); }
  void set_step(int64_t step) override { all_.set_step(step); }
  WireCount count(CollectiveKind kind) const override;

 private:
  int parent() const { return (rank() - 1) / fan_out_; }
  std::vector<int> children() const;
  bool is_below(int rank, int root) const;  // in the part of the tree that begins at `root`
  std::vector<int> order_below(int root) const;
  void move(const Collective& of, CollectiveKind kind, int peer, void* data, int64_t bytes);
  void run_tree(const Collective& collective);
  void broadcast(const Collective& collective);
  void broadcast_down(const Collective& of, std::vector<char>& data);
  std::vector<char> gather(const Collective& of, std::vector<char> own);
  void all_gather(const Collective& collective);
  void all_reduce(const Collective& collective);

  GlooCommunicator all_;
  int fan_out_;
  Ticket next_ticket_ = -2;  // below those of all_
  std::array<WireCount, 8> counts_{};
};

}  // namespace skein
