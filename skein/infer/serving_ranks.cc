#include "skein/infer/serving_ranks.h"

#include <optional>
#include <vector>

#include "skein/backends/backend.h"
#include "skein/base/files/temporary_folder.h"
#include "skein/infer/thread_team.h"
#include "skein/store/job_secret.h"
#include "skein/weights/init_source.h"
#include "skein/weights/initialize.h"

namespace skein {
namespace {

// What a rank has. Made in all ranks at once.
class ServingRank {
 public:
  // `meeting`: where several ranks find each other.
  ServingRank(const ModelSource& source, Device& device, const ServingLayout& layout, DType dtype,
              const std::optional<WorldOptions>& meeting)
      : host_(meeting ? make_world(*meeting) : nullptr),
        device_world_(make_device_world(device)),
        groups_(host_ ? split_by_axis(device_world_ ? *device_world_ : *host_, layout.mesh)
                      : Communicators()),
        programs_(serving_programs(source.config(), dtype, layout, device.kernels(),
                                   meeting ? meeting->rank : 0)),
        executor_(device, programs_, host_ ? &groups_ : nullptr) {
    check_tensors(source, source.config());
    source.load_parameters(source.config(), executor_);
    upload_tables(executor_, source.config(),
                  layout.pages_of(layout.max_positions) * layout.page_size, layout.max_positions);
  }

  Executor& executor() { return executor_; }
  // Of several ranks, what a GPU computed is valid only if none of them failed.
  void act(const std::function<void(Executor&)>& act) {
    act(executor_);
    if (host_ == nullptr) return;
    executor_.device().synchronize();
    if (device_world_) device_world_->check({.label = "a step of the engine"});
  }
  const ProgramSet& programs() const { return programs_; }

 private:
  std::unique_ptr<Communicator> make_device_world(Device& device) const {
    const Backend& backend = find_backend(device.kind());
    if (host_ == nullptr || backend.make_world == nullptr) return nullptr;
    return backend.make_world(*host_, {.stream = device.stream()});
  }

  const std::unique_ptr<Communicator> host_, device_world_;  // null: one rank; host memory serves
  const Communicators groups_;
  const ProgramSet programs_;
  Executor executor_;
};

}  // namespace

// What the ranks have, which goes away on their threads.
struct ServingRanks::Team {
  explicit Team(int64_t size) : ranks(static_cast<size_t>(size)), threads(size) {}
  ~Team() {
    threads.run([&](int64_t rank) {
      ranks[static_cast<size_t>(rank)].made.reset();
      ranks[static_cast<size_t>(rank)].device.reset();
    });
  }

  struct Rank {
    std::unique_ptr<Device> device;  // of rank 0 the caller's
    std::unique_ptr<ServingRank> made;
  };
  // Of several ranks; connections of large worlds are made when they are needed.
  std::optional<TemporaryFolder> meeting;
  std::vector<Rank> ranks;
  ThreadTeam threads;
};

ServingRanks::ServingRanks(const ModelSource& source, Device& first, const ServingLayout& layout,
                           const EngineOptions& options)
    : team_(std::make_unique<Team>(options.tensor)) {
  const auto make = [&](Device& device, const std::optional<WorldOptions>& meeting) {
    return std::make_unique<ServingRank>(source, device, layout, options.compute_dtype, meeting);
  };
  const int64_t size = options.tensor;
  if (size == 1) {
    team_->ranks[0].made = make(first, std::nullopt);
    return;
  }
  const auto rank_of = [&](int64_t rank) -> Team::Rank& {
    return team_->ranks[static_cast<size_t>(rank)];
  };
  team_->threads.run([&](int64_t rank) {
    if (rank > 0) rank_of(rank).device = options.make_device(rank);
  });
  team_->meeting.emplace("ranks");
  const auto secret = std::make_shared<const JobSecret>(random_bytes(32), "this process");
  team_->threads.run([&](int64_t rank) {
    Device& device = rank == 0 ? first : *rank_of(rank).device;
    rank_of(rank).made = make(device, WorldOptions{.rank = static_cast<int>(rank),
                                                   .size = static_cast<int>(size),
                                                   .rendezvous = team_->meeting->path(),
                                                   .secret = secret});
  });
}

ServingRanks::~ServingRanks() = default;

void ServingRanks::on_all(const std::function<void(Executor&)>& act) {
  team_->threads.run([&](int64_t rank) { team_->ranks[static_cast<size_t>(rank)].made->act(act); });
}

Executor& ServingRanks::first() const { return team_->ranks[0].made->executor(); }

const ProgramSet& ServingRanks::programs() const { return team_->ranks[0].made->programs(); }

}  // namespace skein
