// Collectives of all ranks of a large world, over a tree: rank r is connected with (r - 1) /
// fan_out and with fan_out r + 1 to fan_out r + fan_out. Messages make two trips through the tree
// instead of one direct hop, which is acceptable because little is sent among all ranks.
//
// barrier, broadcast, all-gather: shares go up to rank 0, and the whole comes down
// all-reduce     gathers the terms; each rank adds all of them in the canonical order
// others         as GlooCommunicator, which connects with whoever takes part
// Overlap  none: start() does everything
// Cost     an all-gather of x bytes whole: a rank sends its subtree's shares up, and fan_out x down
#pragma once

#include <memory>
#include <vector>

#include "skein/comm/gloo/gloo_communicator.h"

namespace skein {

class TreeCommunicator : public Communicator {
 public:
  // `world`: all ranks; the constructor connects this one with its neighbours in the tree.
  TreeCommunicator(std::shared_ptr<GlooWorld> world, int fan_out);

  int rank() const override { return all_.rank(); }
  int size() const override { return all_.size(); }
  const std::string& name() const override { return all_.name(); }
  Ticket start(const Collective& collective) override;
  void wait(Ticket ticket) override;
  void advance_before(Ticket ticket) override {
    if (ticket >= 0) all_.advance_before(ticket);
  }
  std::unique_ptr<Communicator> group(const std::vector<int>& members, const std::string& name,
                                      int64_t leaves = 0) override {
    return all_.group(members, name, leaves);
  }
  void prepare(const Collective& collective) override;
  void check(const Collective& during) override { all_.check(during); }
  void end(const std::string& cause) noexcept override { all_.end(cause); }
  void set_step(int64_t step) override { all_.set_step(step); }
  WireCount count(CollectiveKind kind) const override;

 private:
  int parent() const { return (rank() - 1) / fan_out_; }
  std::vector<int> children() const;
  bool is_below(int rank, int root) const;  // whether it is in the subtree of `root`
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
  Ticket next_ticket_ = -2;  // below the tickets of all_
  std::array<WireCount, 8> counts_{};
};

}  // namespace skein
