// The records of the made-up store; for simulated_records.cc alone.
#pragma once

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "skein/supervise/simulation/simulated_cluster.h"

namespace skein {

class Simulation::Records : public RecordStore {
 public:
  Records(Simulation& simulation, SimHost& host) : simulation_(simulation), host_(host) {}

  const std::string& text() const override;
  void write(const HostRecord& record) override;
  void remove(const std::string& host) override;
  std::vector<HostRecord> hosts(const std::set<std::string>& known, std::set<std::string>& unread,
                                const std::function<void()>& after_each) override;
  int64_t newest_number() override;
  SharedGeneration generation(int64_t number) override;
  bool create(const GenerationRecord& generation) override;
  std::optional<HostDigest> digest() override;
  void write(const HostDigest& digest) override;
  std::shared_ptr<const DigestList> digest_list() override;
  void write(std::shared_ptr<const DigestList> list) override;

 private:
  void fail_at_times(const std::string& name);
  template <typename Record>
  Record read(const std::string& name, const Versions<Record>& versions);
  template <typename Record>
  void replace(const std::string& name, Versions<Record>& versions, Record record);

  Simulation& simulation_;
  SimHost& host_;
  int64_t known_number_ = 0;
};

}  // namespace skein
