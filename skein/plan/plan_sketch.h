// A plan from a few layers: close enough to rank layouts, at a small share of the cost.
//
// Method   what a pipeline chunk takes is linear in its layers, and chunks are of three kinds: the
//          first one, the last one and those between. Each kind is planned with one layer and with
//          two, on a mesh of at most three stages; every chunk of the layout follows.
// Exact    but for what does not add up so: buckets of gradients that span chunks, the packing of
//          short lived memory. Wire and collectives are left out.
#pragma once

#include <array>
#include <map>
#include <memory>
#include <string>

#include "skein/base/mutex.h"
#include "skein/plan/plan.h"

namespace skein {

// Of one chunk with one and with two layers; activations of one micro-batch.
using ChunkSketch = std::array<StagePlan, 2>;
using ChunkSketches = std::array<ChunkSketch, 3>;  // first, middle, last; of one chunk: all alike

// What layouts that differ in virtual stages share.
class SketchCache {
 public:
  std::shared_ptr<const ChunkSketches> find(const std::string& key);
  void keep(const std::string& key, std::shared_ptr<const ChunkSketches> sketches);

 private:
  Mutex mutex_;
  std::map<std::string, std::shared_ptr<const ChunkSketches>> by_key_ SKEIN_GUARDED_BY(mutex_);
};

// Threads  any number at once over one cache
Plan sketch_plan(const PlanRequest& request, SketchCache& cache);

}  // namespace skein
