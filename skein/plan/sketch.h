// A plan extrapolated from a few layers: accurate enough to rank layouts, at a small share of the
// cost.
//
// Method   the cost of a pipeline chunk is linear in its layers, and there are three kinds of
//          chunks: the first, the last and those between. Each kind is planned with one layer and
//          with two, on a mesh of at most three stages; every chunk of the layout is extrapolated
//          from these.
// Exact    except for what is not linear: gradient buckets that span chunks, and the packing of
//          short-lived memory. Wire and collectives are left out, and what of the exchange is
//          exposed.
#pragma once

#include <array>
#include <compare>
#include <map>
#include <memory>

#include "skein/base/threads/mutex.h"
#include "skein/plan/plan.h"

namespace skein {

// Plans of a chunk with one layer and with two; activations of one micro-batch.
using ChunkSketch = std::array<StagePlan, 2>;
using ChunkSketches = std::array<ChunkSketch, 3>;  // first, middle, last: those that there are

// What the sketches of a request's model and hardware depend on.
struct SketchKey {
  int64_t ranks_of_stage = 1, tensor = 1, context = 1, zero = 1;
  int64_t micro_sequences = 1, global_sequences = 1;
  int64_t stages = 1;  // of the small mesh
  RecomputePolicy recompute = RecomputePolicy::kNone;
  bool pairs = false;
  auto operator<=>(const SketchKey&) const = default;
};

// Sketches, which layouts that differ only in virtual stages share.
class SketchCache {
 public:
  using Entry = std::shared_ptr<const ChunkSketches>;
  // Makes it where there is none; others that ask for the same one meanwhile wait.
  template <typename Make>
  Entry get(const SketchKey& key, const Make& make) {
    const std::shared_ptr<Slot> slot = slot_of(key);
    const Lock lock(slot->mutex);
    if (!slot->entry) slot->entry = make();
    return slot->entry;
  }

 private:
  struct Slot {
    Mutex mutex;
    Entry entry SKEIN_GUARDED_BY(mutex);
  };
  std::shared_ptr<Slot> slot_of(const SketchKey& key);

  Mutex mutex_;
  std::map<SketchKey, std::shared_ptr<Slot>> slots_ SKEIN_GUARDED_BY(mutex_);
};

// The chunks of a layout; throws what planning them throws.
SketchCache::Entry sketch_chunks(const PlanRequest& request, const PipelineShape& shape,
                                 SketchCache& cache);

// Threads  may be called at once by several threads with one cache, which is for requests that
//          differ in nothing but the layout
Plan sketch_plan(const PlanRequest& request, SketchCache& cache);

}  // namespace skein
