#include "skein/comm/nccl/nccl_world.h"

#include <algorithm>
#include <chrono>
#include <optional>
#include <utility>

#include "skein/comm/nccl/nccl_queue.h"

namespace skein {

NcclWorld::NcclWorld(Communicator& host, const DeviceWorldOptions& options)
    : host_(host), options_(options) {
  cuda::check(cudaGetDevice(&device_), "cudaGetDevice");
  if (host.size() == 1) return;
  NcclLibrary::get();
  watcher_ = std::thread([this] { watch(); });
}

NcclWorld::~NcclWorld() {
  {
    const Lock lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_all();
  if (watcher_.joinable()) watcher_.join();
}

int NcclWorld::count_meeting(const std::vector<int>& world_ranks, const std::string& name) {
  const Lock lock(mutex_);
  return meetings_[fmt::format("{} {}", fmt::join(world_ranks, ","), name)]++;
}

void NcclWorld::announce(NcclQueue* queue) {
  const Lock lock(mutex_);
  announced_.push_back(queue);
  has_announced_ = true;
}

void NcclWorld::connect_announced() {
  if (!has_announced_) return;
  const Lock connecting(connecting_);
  std::vector<NcclQueue*> announced;
  {
    const Lock lock(mutex_);
    announced = std::exchange(announced_, {});
  }
  std::sort(announced.begin(), announced.end(),
            [](const NcclQueue* a, const NcclQueue* b) { return a->key() < b->key(); });
  for (NcclQueue* queue : announced) {
    queue->connect();
    const Lock lock(mutex_);
    queues_.push_back(queue);
  }
  const Lock lock(mutex_);
  has_announced_ = !announced_.empty();
}

void NcclWorld::remove(NcclQueue* queue) {
  std::erase(announced_, queue);
  std::erase(queues_, queue);
}

void NcclWorld::check_alive() const {
  if (!ended_) return;
  const Lock lock(mutex_);
  throw Error(ErrorCode::kPeerLost, cause_);
}

void NcclWorld::lose(const std::string& cause) {
  end(cause);
  check_alive();
  throw Error(ErrorCode::kPeerLost, cause);
}

void NcclWorld::end(const std::string& cause) noexcept {
  constexpr auto kPatience = std::chrono::seconds(5);
  {
    const Lock lock(mutex_);
    if (ended_) return;
    cause_ = cause;
    ended_ = true;
  }
  host_.end(cause);
  // A call that hangs within NCCL keeps posting_, and ends by what follows.
  std::unique_lock posting(posting_, std::defer_lock);  // a Mutex has no deadline
  static_cast<void>(posting.try_lock_for(kPatience));
  const Lock lock(mutex_);
  if (queues_.empty()) return;
  // In one group, so that NCCL tells all of them before it waits for one and tidies up the device.
  const NcclLibrary& nccl = NcclLibrary::get();
  nccl.group_start();
  for (NcclQueue* queue : queues_) queue->disconnect();
  nccl.group_end();
}

void NcclWorld::watch() {
  constexpr auto kInterval = std::chrono::milliseconds(100);
  cudaSetDevice(device_);
  Lock lock(mutex_);
  while (!wake_.wait_for(lock, kInterval, [this]() SKEIN_REQUIRES(mutex_) { return stopping_; })) {
    std::optional<std::string> cause;
    for (size_t i = 0; i < queues_.size() && !cause && !ended_; ++i) cause = queues_[i]->look();
    if (!cause) continue;
    lock.unlock();
    end(*cause);
    lock.lock();
  }
}

}  // namespace skein
