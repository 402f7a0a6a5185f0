#include "skein/supervise/store.h"

namespace skein {
namespace {

class MemoryStore : public RendezvousStore {
 public:
  StoreView exchange(const HostRecord& record) override {
    view_.hosts = {record};
    return view_;
  }
  bool create(const GenerationRecord& generation) override {
    view_.newest = generation;
    return true;
  }

 private:
  StoreView view_;
};

}  // namespace

std::unique_ptr<RendezvousStore> memory_store() { return std::make_unique<MemoryStore>(); }

}  // namespace skein
