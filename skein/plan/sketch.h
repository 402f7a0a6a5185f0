// A plan extrapolated from a few layers: accurate enough to rank layouts, at a small share of the
// cost.
//
// Method   the cost of a pipeline chunk is linear in its layers, and depends on its position: the
//          first, the last, or between. A chunk of each position is planned with one layer and with
//          two, on a mesh of at most three stages; every chunk of the layout is extrapolated from
//          these.
// Exact    except for what is not linear: gradient buckets that span chunks, and the packing of
//          short-lived memory. Wire and collectives are left out, and what of the exchange is
//          exposed.
#pragma once

#include <array>
#include <memory>
#include <unordered_map>

#include "skein/base/threads/mutex.h"
#include "skein/plan/plan.h"

namespace skein {

// Where a chunk lies in the model. A model in one chunk has only a first.
enum class ChunkPosition { kFirst, kMiddle, kLast };
inline constexpr size_t kNumChunkPositions = 3;
ChunkPosition position_of(int64_t chunk, int64_t num_chunks);

// Plans of a chunk with one layer and with two; activations of one micro-batch.
struct ChunkSketch {
  StagePlan one_layer, two_layers;
};

// Those of the positions that the layout has.
class ChunkSketches {
 public:
  ChunkSketch& operator[](ChunkPosition position) {
    return sketches_[static_cast<size_t>(position)];
  }
  const ChunkSketch& operator[](ChunkPosition position) const {
    return sketches_[static_cast<size_t>(position)];
  }

 private:
  std::array<ChunkSketch, kNumChunkPositions> sketches_;
};

// The run of a small mesh, of whose chunks sketches are made. The whole configuration is compared,
// so that no two layouts share sketches that a setting tells apart.
struct SketchKey {
  Config config;
  int64_t ranks = 1;
  bool operator==(const SketchKey&) const = default;

  // Of the settings that a search varies; equal hashes may be of different keys.
  struct Hash {
    size_t operator()(const SketchKey& key) const;
  };
};

// Sketches. Layouts share them if their small meshes are equal, such as those that differ only in
// virtual stages.
class SketchCache {
 public:
  using SharedSketches = std::shared_ptr<const ChunkSketches>;
  // Makes it where there is none; others that ask for the same one meanwhile wait.
  template <typename Make>
  SharedSketches get(const SketchKey& key, const Make& make) {
    const std::shared_ptr<CacheSlot> slot = slot_of(key);
    const Lock lock(slot->mutex);
    if (!slot->entry) slot->entry = make();
    return slot->entry;
  }

 private:
  struct CacheSlot {
    Mutex mutex;
    SharedSketches entry SKEIN_GUARDED_BY(mutex);
  };
  std::shared_ptr<CacheSlot> slot_of(const SketchKey& key);

  Mutex mutex_;
  std::unordered_map<SketchKey, std::shared_ptr<CacheSlot>, SketchKey::Hash> slots_
      SKEIN_GUARDED_BY(mutex_);
};

// The chunks of a layout that has so many; throws what planning them throws.
SketchCache::SharedSketches sketch_chunks(const PlanRequest& request, int64_t num_chunks,
                                          SketchCache& cache);

// Threads  may be called at once by several threads with one cache, which is for requests that
//          differ in nothing but the layout
Plan sketch_plan(const PlanRequest& request, SketchCache& cache);

}  // namespace skein
