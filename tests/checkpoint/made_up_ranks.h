// Thousands of ranks that save one checkpoint of a Llama without its bytes, for tests and
// benchmarks of what grows with ranks: what each stores and says, and what a reader opens. In files
// that are not there, under checksums that are made up.
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "skein/checkpoint/find/reader.h"
#include "skein/checkpoint/save/layout.h"
#include "skein/checkpoint/save/part.h"
#include "skein/checkpoint/save/stored_part.h"

namespace skein::test {

struct LlamaSizes {
  int64_t layers = 80, hidden = 8192, intermediate = 28672, kv = 1024, vocabulary = 32000;
};

class MadeUpRanks {
 public:
  MadeUpRanks(Mesh mesh, LlamaSizes sizes) : mesh_(std::move(mesh)), sizes_(sizes) {}

  int64_t num_ranks() const { return mesh_.num_ranks(); }
  const Mesh& mesh() const { return mesh_; }

  struct Tensor {
    std::string name;
    TensorType type;
    const char* group;
  };
  // Of a rank's stage: bf16 weights, and over dp in ranges fp32 masters and moments.
  std::vector<Tensor> tensors(int64_t rank) const {
    const int64_t stages = mesh_.size("pp"), stage = mesh_.coordinates(rank)[mesh_.find("pp")];
    std::vector<Tensor> all;
    const int64_t h = sizes_.hidden, f = sizes_.intermediate;
    if (stage == 0) add(all, "model.embed_tokens.weight", {sizes_.vocabulary, h}, 0);
    for (int64_t layer = stage * sizes_.layers / stages;
         layer < (stage + 1) * sizes_.layers / stages; ++layer) {
      const std::string at = fmt::format("model.layers.{}.", layer);
      add(all, at + "input_layernorm.weight", {h}, -1);
      add(all, at + "self_attn.q_proj.weight", {h, h}, 0);
      add(all, at + "self_attn.k_proj.weight", {sizes_.kv, h}, 0);
      add(all, at + "self_attn.v_proj.weight", {sizes_.kv, h}, 0);
      add(all, at + "self_attn.o_proj.weight", {h, h}, 1);
      add(all, at + "post_attention_layernorm.weight", {h}, -1);
      add(all, at + "mlp.gate_proj.weight", {f, h}, 0);
      add(all, at + "mlp.up_proj.weight", {f, h}, 0);
      add(all, at + "mlp.down_proj.weight", {h, f}, 1);
    }
    if (stage == stages - 1) {
      add(all, "model.norm.weight", {h}, -1);
      add(all, "lm_head.weight", {sizes_.vocabulary, h}, 0);
    }
    return all;
  }

  // What the rank says that it stored, as CheckpointWriter would.
  Manifest stored(int64_t rank) const {
    std::vector<TensorSpec> specs;
    for (const Tensor& tensor : tensors(rank)) {
      specs.push_back(TensorSpec::part(tensor.name, tensor.type,
                                       stored_part(tensor.type, mesh_, rank), tensor.group));
    }
    const CheckpointLayout layout =
        plan_checkpoint(std::move(specs), int64_t{4} << 30, static_cast<int>(rank));
    Manifest own;
    own.state.step = own.state.schedule_step = 1;
    if (rank % (num_ranks() / mesh_.size("dp")) == 0) {
      const int64_t dp = rank / (num_ranks() / mesh_.size("dp"));
      own.state.first_lane = 4 * dp;
      own.state.lanes = {{"seed", 1}, {"lanes", Json(std::vector<std::array<int, 3>>(4))}};
    } else {
      own.state.first_lane.reset();
    }
    const std::string checksum(32, 'a');
    for (const CheckpointFile& file : layout.files) {
      own.files.push_back({file.name, file.layout.file_bytes,
                           static_cast<int64_t>(file.layout.header.size()), checksum});
      for (const size_t position : file.layout.order) {
        const TensorSpec& spec = layout.specs[file.specs[position]];
        const int64_t begin = file.layout.begin[position];
        own.tensors.push_back({spec.name,
                               spec.dtype,
                               spec.shape,
                               {{file.name, spec.slice, begin, begin + spec.stored_bytes(),
                                 checksum, spec.stored_range()}}});
      }
    }
    for (size_t i = 0; i < layout.specs.size(); ++i) {
      const TensorSpec& spec = layout.specs[i];
      if (layout.spec_bytes[i] == 0) {
        own.tensors.push_back({spec.name, spec.dtype, spec.shape, {}});
      }
    }
    return own;
  }

  // Finds every shard that the rank would read to go on; elements that it needs and found.
  struct Found {
    int64_t needed = 0, near = 0;
  };
  Found find_what_a_rank_reads(const CheckpointReader& reader, int64_t rank) const {
    Found found;
    for (const Tensor& tensor : tensors(rank)) {
      const Box box = tensor.type.local_box(mesh_, rank);
      const FlatRange range = tensor.type.local_range(mesh_, rank);
      if (range.count == 0) continue;
      found.needed += range.count;
      for (const IndexShard& shard : reader.find_shards(tensor.name, box, range)) {
        found.near += shard.range.count;
      }
    }
    return found;
  }

 private:
  // `dim` is the one that tp shards; -1: none.
  void add(std::vector<Tensor>& all, const std::string& name, const Shape& shape, int dim) const {
    for (const char* kind : {"", "master.", "exp_avg.", "exp_avg_sq."}) {
      const bool is_weight = *kind == '\0';
      TensorType type =
          TensorType::replicated(is_weight ? DType::kBF16 : DType::kF32, shape, mesh_);
      if (dim >= 0) type.placements[mesh_.find("tp")] = Placement::sharded(dim);
      if (!is_weight) type.placements[mesh_.find("dp")] = Placement::flat();
      all.push_back({kind + name, std::move(type), is_weight ? "weights" : "optimizer"});
    }
  }

  Mesh mesh_;
  LlamaSizes sizes_;
};

// The most memory that `work` had beyond what there was before, in bytes, as the system counts it.
template <typename Work>
int64_t peak_bytes(const Work& work) {
  const auto value = [](const char* key) -> int64_t {
    const std::string status = read_file_if_any("/proc/self/status");
    const size_t at = status.find(key);
    return at == std::string::npos ? 0 : std::atoll(status.c_str() + at + std::strlen(key)) * 1024;
  };
  const FileDescriptor reset(::open("/proc/self/clear_refs", O_WRONLY | O_CLOEXEC));
  (void)!::write(reset.get(), "5", 1);  // VmHWM begins anew
  const int64_t before = value("VmRSS:");
  work();
  return value("VmHWM:") - before;
}

}  // namespace skein::test
