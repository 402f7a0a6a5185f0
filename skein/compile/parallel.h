// How a run is laid out over its ranks: the mesh, a rank's place in it, and each rank's share of
// the global batch.
//
// Rows    the global batch is cut into `reduction_width` virtual ranks of consecutive rows. Their
//         gradient sums are added by one binary tree whose shape does not depend on dp, so neither
//         do the numbers; a data rank hosts a branch of it (comm/branches.h), of equal size where
//         there can be such (docs/parallelism.md)
// Errors  Error{kUsage}, of which IndivisibleBatch is one, naming the keys, what was found and what
//         would work instead
#pragma once

#include <cstdint>
#include <string>

#include "skein/base/error.h"
#include "skein/comm/branches.h"
#include "skein/config/config.h"
#include "skein/data/lanes/batch_ramp.h"
#include "skein/model/decoder.h"
#include "skein/tensor/mesh.h"

namespace skein {

// Of ranks that split one copy of the model, each with its heads and columns (tensor parallelism).
// Throws Error{kUsage} for a number that cannot split it, naming those that can.
Mesh tensor_mesh(const DecoderConfig& model, int64_t ranks);

struct ParallelLayout {
  Mesh mesh = Mesh::standard(1, 1, 1, 1);
  int64_t rank = 0;
  int64_t reduction_width = 1;
  int64_t virtual_stages = 1;
  bool sequence = true;
  int64_t zero = 1;

  int64_t coordinate(std::string_view axis) const;
  int64_t data_degree() const { return mesh.size("dp"); }
  int64_t stage() const { return coordinate("pp"); }
  // Whether this rank's coordinates on all axes but "dp" are 0.
  bool is_first_of_replica() const;
  // The virtual ranks that the data ranks host, and this rank of them.
  Branches shares() const { return {reduction_width, data_degree()}; }
  Branch share() const { return shares().of(coordinate("dp")); }
  int64_t hosted_virtual_ranks() const { return share().count; }
  // The rank that differs from this one on the data axis alone.
  ParallelLayout at_data_rank(int64_t data_rank) const;
};

// The global batch cannot be divided among these ranks.
class IndivisibleBatch : public Error {
 public:
  explicit IndivisibleBatch(const std::string& message) : Error(ErrorCode::kUsage, message) {}
};

// `stored_width`: the reduction width stored in the checkpoint that training resumes from; 0: none.
ParallelLayout parallel_layout(const Config& config, const DecoderConfig& model, int64_t num_ranks,
                               int64_t rank, int64_t stored_width = 0);

// The rows of each batch that the rank reads: as many for each virtual rank that it hosts.
RowShare rows_of(const ParallelLayout& layout);

// A sentence on data ranks that host unequal numbers of virtual ranks, of which those with fewer
// wait in each step; "" where all host as many.
std::string unequal_shares(const ParallelLayout& layout);

// Whether layers wait for other ranks, for which pairs of micro-batches would have something to do.
bool layers_wait(const ParallelLayout& layout);

// A sentence on parallel.pairs where it is asked for and has no effect; "" elsewhere.
std::string idle_pairs(const Config& config, const ParallelLayout& layout);

// The same of parallel.zero, where it splits less than was asked for.
std::string idle_zero(const Config& config, const ParallelLayout& layout);

// The number of ranks that [parallel] requires where parallel.data is set; 0 where it is not.
int64_t configured_ranks(const ParallelConfig& parallel);

}  // namespace skein
