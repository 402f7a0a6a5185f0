// A plan extrapolated from a few layers: accurate enough to rank layouts, at a small share of the
// cost.
//
// Method   the cost of a pipeline chunk is linear in its layers, and there are three kinds of
//          chunks: the first, the last and those between. Each kind is planned with one layer and
//          with two, on a mesh of at most three stages; every chunk of the layout is extrapolated
//          from these.
// Exact    except for what is not linear: gradient buckets that span chunks, and the packing of
//          short-lived memory. Wire and collectives are left out.
#pragma once

#include <array>
#include <map>
#include <memory>
#include <string>

#include "skein/base/mutex.h"
#include "skein/plan/plan.h"

namespace skein {

// Plans of a chunk with one layer and with two; activations of one micro-batch.
using ChunkSketch = std::array<StagePlan, 2>;
using ChunkSketches = std::array<ChunkSketch, 3>;  // first, middle, last

// Sketches, which layouts that differ only in virtual stages share.
class SketchCache {
 public:
  std::shared_ptr<const ChunkSketches> find(const std::string& key);
  void keep(const std::string& key, std::shared_ptr<const ChunkSketches> sketches);

 private:
  Mutex mutex_;
  std::map<std::string, std::shared_ptr<const ChunkSketches>> by_key_ SKEIN_GUARDED_BY(mutex_);
};

// Threads  may be called at once by several threads with one cache
Plan sketch_plan(const PlanRequest& request, SketchCache& cache);

}  // namespace skein
