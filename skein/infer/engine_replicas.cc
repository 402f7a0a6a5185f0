#include "skein/infer/engine_replicas.h"

#include <algorithm>
#include <atomic>
#include <utility>

namespace skein {

EngineOptions options_of_replica(EngineOptions options, int64_t replica) {
  options.make_device = [make = std::move(options.make_device), first = replica * options.tensor](
                            int64_t rank) { return make(first + rank); };
  return options;
}

EngineReplicas::EngineReplicas(const ModelSource& source, const EngineOptions& options,
                               int64_t replicas)
    : replicas_(static_cast<size_t>(replicas)), threads_(replicas) {
  threads_.run([&](int64_t member) {
    const EngineOptions own = options_of_replica(options, member);
    Replica& replica = replicas_[static_cast<size_t>(member)];
    replica.device = own.make_device(0);
    replica.engine = std::make_unique<TextEngine>(source, *replica.device, own);
  });
}

EngineReplicas::~EngineReplicas() {
  threads_.run([&](int64_t member) {
    Replica& replica = replicas_[static_cast<size_t>(member)];
    replica.engine.reset();
    replica.device.reset();
  });
}

void EngineReplicas::run(std::vector<TextRequest> requests,
                         const std::function<void()>& after_step) {
  int64_t total = 0;
  const auto size_of_request = [](const TextRequest& request) {
    return std::ssize(request.tokens) + request.max_new_tokens;
  };
  for (const TextRequest& request : requests) total += size_of_request(request);
  // Every engine gets the same share of the tokens.
  const int64_t num_replicas = std::ssize(replicas_);
  std::vector<std::vector<TextRequest>> shares(replicas_.size());
  int64_t before = 0;
  for (TextRequest& request : requests) {
    const int64_t size = size_of_request(request);
    const int64_t member =
        std::min(before * num_replicas / std::max<int64_t>(total, 1), num_replicas - 1);
    before += size;
    shares[static_cast<size_t>(member)].push_back(std::move(request));
  }
  std::atomic<bool> has_one_failed = false;
  threads_.run([&](int64_t member) {
    TextEngine& engine = *replicas_[static_cast<size_t>(member)].engine;
    try {
      for (TextRequest& request : shares[static_cast<size_t>(member)]) {
        engine.add(std::move(request));
      }
      while (!has_one_failed && engine.step()) {
        if (member == 0 && after_step) after_step();
      }
    } catch (...) {
      has_one_failed = true;  // which ends the other engines too
      throw;
    }
  });
  if (after_step) after_step();
}

}  // namespace skein
