// A group of one rank. Collectives copy input to output, in host memory, in start(); sends and
// receives have no peer.
#pragma once

#include <array>

#include "skein/comm/communicator.h"

namespace skein {

class LocalCommunicator : public Communicator {
 public:
  explicit LocalCommunicator(std::string name) : name_(std::move(name)) {}

  int rank() const override { return 0; }
  int size() const override { return 1; }
  const std::string& name() const override { return name_; }
  Ticket start(const Collective& collective) override;
  void wait(Ticket) override {}
  std::unique_ptr<Communicator> group(const std::vector<int>& members, const std::string& name,
                                      int64_t leaves = 0) override;
  void set_step(int64_t) override {}
  WireCount count(CollectiveKind kind) const override { return counts_[static_cast<size_t>(kind)]; }

 private:
  std::string name_;
  Ticket next_ticket_ = 0;
  std::array<WireCount, 8> counts_{};
};

}  // namespace skein
