#include "skein/compile/parallel.h"

#include <algorithm>

#include "skein/base/error.h"
#include "skein/base/text/divisors.h"
#include "skein/base/text/units.h"
#include "skein/config/batches.h"
#include "skein/config/node_range.h"
#include "skein/model/placement.h"

namespace skein {
namespace {

// The number of ranks that hold one copy of the model.
int64_t ranks_per_replica(const ParallelConfig& parallel) {
  return parallel.tensor * parallel.pipeline * parallel.context;
}

int64_t data_degree(const ParallelConfig& parallel, int64_t num_ranks) {
  const int64_t per_replica = ranks_per_replica(parallel);
  if (num_ranks % per_replica != 0 ||
      (parallel.data > 0 && parallel.data * per_replica != num_ranks)) {
    const std::string data = parallel.data > 0 ? fmt::format("data {} x ", parallel.data) : "";
    fail(ErrorCode::kUsage,
         "[parallel] asks for {}pipeline {} x context {} x tensor {} and there {} {}: "
         "expected {} (launch.workers, or --ranks of a plan), or other degrees",
         data, parallel.pipeline, parallel.context, parallel.tensor, num_ranks == 1 ? "is" : "are",
         counted(num_ranks, "worker"),
         parallel.data > 0 ? fmt::format("{}", parallel.data * per_replica)
                           : multiples_near(num_ranks, per_replica));
  }
  return num_ranks / per_replica;
}

// The number of tensor ranks that hold the same key-value head.
int64_t kv_replication(const ParallelConfig& parallel, const DecoderConfig& model) {
  const int64_t tensor = parallel.tensor, heads = model.num_key_value_heads;
  const int64_t needed = tensor > heads && tensor % heads == 0 ? tensor / heads : 1;
  const int64_t asked = parallel.kv_replication;
  if (asked > 1 && (tensor % asked != 0 || asked != needed)) {
    fail(
        ErrorCode::kUsage,
        "[parallel] kv_replication is {} with tensor {} and {} key-value heads: expected {} (or 0, "
        "as needed)",
        asked, tensor, heads, needed);
  }
  return needed;
}

Mesh make_mesh(const ParallelConfig& parallel, const DecoderConfig& model, int64_t data) {
  const int64_t replica = kv_replication(parallel, model);
  if (replica == 1) {
    return Mesh::standard(parallel.pipeline, data, parallel.context, parallel.tensor);
  }
  return Mesh({{"pp", parallel.pipeline},
               {"dp", data},
               {"cp", parallel.context},
               {"kv", parallel.tensor / replica},
               {"replica", replica}});
}

}  // namespace

Mesh tensor_mesh(const DecoderConfig& model, int64_t ranks) {
  const Mesh mesh = make_mesh({.tensor = ranks}, model, 1);
  check_decoder_mesh(model, mesh, "--tensor");
  return mesh;
}

namespace {

// Machines may come and go: the width is that of the most, so that fewer can serve it, too.
int64_t initial_width(const Config& config, int64_t data) {
  const auto nodes = parse_node_range(config.launch.nodes);
  const int64_t most = nodes ? nodes->most * config.launch.workers : 0;
  const int64_t replica = ranks_per_replica(config.parallel);
  const bool may_change = nodes && nodes->most > nodes->least && most % replica == 0;
  return may_change ? std::max(data, most / replica) : data;
}

// What serves this batch as it is, where anything does.
std::string wider_reduction(int64_t micro_batches, int64_t data) {
  const int64_t width = divisor_from(data, micro_batches);
  if (width == 0) return "";
  return fmt::format(
      "; or [parallel] reduction_width = {}, virtual ranks that the {} data ranks "
      "share",
      width, data);
}

int64_t reduction_width(const Config& config, int64_t data, int64_t stored) {
  // Keeps the width that the run began with, so that sums stay in the same order, unless it cannot
  // serve this number of data ranks; the caller warns then.
  const int64_t asked = config.parallel.reduction_width;
  const int64_t width = asked > 0 ? asked : stored >= data ? stored : initial_width(config, data);
  if (width < data) {
    fail(ErrorCode::kUsage,
         "[parallel] reduction_width is {} and there are {} data ranks, and each needs a virtual "
         "rank: expected at least {} (or 0, as needed), or at most {} data ranks",
         width, data, data, width);
  }
  const int64_t micro = config.batch.micro_sequences;
  for (const int64_t sequences : batch_ramp(config).sizes()) {
    if (sequences % (width * micro) == 0) continue;
    throw IndivisibleBatch(fmt::format(
        "[batch] {} {}: expected a multiple of reduction_width {} x "
        "micro_sequences {} = {} ({} data ranks), such as {}{}{}",
        sequences == config.batch.global_sequences ? "global_sequences is" : "ramp has batches of",
        sequences, width, micro, width * micro, data, multiples_near(sequences, width * micro),
        asked > 0 ? "" : wider_reduction(sequences / micro, data),
        asked > 0 ? ""
                  : "; a run that began with more data ranks continues if reduction_width is their "
                    "number"));
  }
  return width;
}

}  // namespace

int64_t ParallelLayout::coordinate(std::string_view axis) const {
  const int index = mesh.find(axis);
  return index < 0 ? 0 : mesh.coordinates(rank)[index];
}

ParallelLayout ParallelLayout::at_data_rank(int64_t data_rank) const {
  int64_t stride = 1;  // between neighbours on the data axis
  for (int axis = mesh.find("dp") + 1; axis < mesh.num_axes(); ++axis) {
    stride *= mesh.axis(axis).size;
  }
  ParallelLayout there = *this;
  there.rank += (data_rank - coordinate("dp")) * stride;
  return there;
}

bool ParallelLayout::is_first_of_replica() const {
  for (const MeshAxis& axis : mesh.axes()) {
    if (axis.name != "dp" && coordinate(axis.name) != 0) return false;
  }
  return true;
}

RowShare rows_of(const ParallelLayout& layout) {
  const Branch share = layout.share();
  return {share.first, share.first + share.count, layout.reduction_width};
}

std::string unequal_shares(const ParallelLayout& layout) {
  const Branches shares = layout.shares();
  if (shares.are_equal()) return "";
  const double busy = static_cast<double>(layout.reduction_width) /
                      static_cast<double>(shares.most() * layout.data_degree());
  return fmt::format(
      "{} data ranks share {} virtual ranks, {} to {} each: a step takes as long as the rank with "
      "most, and the ranks wait for {:.0f} % of the time up to the update; what one waits, "
      "launch.collective_timeout_s must allow",
      layout.data_degree(), layout.reduction_width, shares.least(), shares.most(),
      100 * (1 - busy));
}

bool layers_wait(const ParallelLayout& layout) {
  const int64_t replica = layout.mesh.num_ranks() / layout.data_degree() / layout.mesh.size("pp");
  return replica > 1 || (layout.zero >= 3 && layout.data_degree() > 1);
}

std::string idle_zero(const Config& config, const ParallelLayout& layout) {
  if (layout.zero < 2) return "";
  if (layout.mesh.axes_of_copies().empty()) {
    return fmt::format(
        "parallel.zero = {} splits nothing: there is one data and one context rank, and nothing is "
        "held twice",
        layout.zero);
  }
  const int64_t micro_batches = config.batch.global_sequences / layout.reduction_width *
                                layout.shares().most() / config.batch.micro_sequences;
  if (micro_batches == 1) return "";
  return fmt::format(
      "parallel.zero = {}: a rank has {} micro-batches a step, whose gradients are added up before "
      "they are split{}{}",
      layout.zero == 2 ? "2 does what 1 does" : "3 leaves gradients whole", micro_batches,
      config.parallel.pairs ? "" : ": larger micro-batches or more data ranks leave one",
      layout.zero == 2 ? ", 3 splits the weights" : "");
}

std::string idle_pairs(const Config& config, const ParallelLayout& layout) {
  if (!config.parallel.pairs) return "";
  const int64_t smallest = batch_ramp(config).smallest();
  const int64_t micro_batches = smallest / layout.reduction_width / config.batch.micro_sequences;
  if (micro_batches < 2) {
    return fmt::format(
        "parallel.pairs has no effect: a virtual rank has one micro-batch a step ({} "
        "{} / reduction_width {} / micro_sequences {}), and a pair takes two",
        config.batch.ramp.empty() ? "global_sequences" : "batch.ramp", smallest,
        layout.reduction_width, config.batch.micro_sequences);
  }
  if (!layers_wait(layout)) {
    return "parallel.pairs has no effect but to take memory: without tensor or context ranks, or "
           "zero = 3 over data ranks, no layer waits for other ranks";
  }
  return "";
}

int64_t configured_ranks(const ParallelConfig& parallel) {
  return parallel.data * ranks_per_replica(parallel);
}

ParallelLayout parallel_layout(const Config& config, const DecoderConfig& model, int64_t num_ranks,
                               int64_t rank, int64_t stored_width) {
  const ParallelConfig& parallel = config.parallel;
  ParallelLayout layout;
  const int64_t data = data_degree(parallel, num_ranks);
  layout.mesh = make_mesh(parallel, model, data);
  check_decoder_mesh(model, layout.mesh);
  const int64_t chunks = parallel.pipeline * parallel.virtual_stages;
  if (chunks > model.num_hidden_layers) {
    fail(ErrorCode::kUsage,
         "[parallel] pipeline {} x virtual_stages {} makes {} chunks of the model's {} layers: "
         "expected at most {}",
         parallel.pipeline, parallel.virtual_stages, chunks, model.num_hidden_layers,
         model.num_hidden_layers);
  }
  layout.rank = rank;
  layout.reduction_width = reduction_width(config, data, stored_width);
  layout.virtual_stages = parallel.virtual_stages;
  layout.sequence = parallel.sequence;
  layout.zero = parallel.zero;
  return layout;
}

}  // namespace skein
