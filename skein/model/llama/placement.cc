#include "skein/model/llama/placement.h"

#include <algorithm>

#include "skein/base/error.h"

namespace skein {
namespace {

class Placer {
 public:
  explicit Placer(const Mesh& mesh)
      : mesh_(mesh), placements_(mesh.num_axes(), Placement::replicated()) {}

  Placer& on(const std::vector<std::string>& axes, Placement placement) {
    for (const std::string& name : axes) {
      const int axis = mesh_.find(name);
      if (axis >= 0) placements_[axis] = placement;
    }
    return *this;
  }
  Placements take() { return std::move(placements_); }

 private:
  const Mesh& mesh_;
  Placements placements_;
};

bool contains(const std::string& name, std::initializer_list<std::string_view> parts) {
  return std::any_of(parts.begin(), parts.end(),
                     [&](std::string_view part) { return name.find(part) != std::string::npos; });
}

Placements parameter_placements(const std::string& name, const Mesh& mesh) {
  Placer placer(mesh);
  if (contains(name, {"norm.weight"})) return placer.take();
  if (contains(name, {"o_proj.", "down_proj."})) {
    // The bias of a product whose terms are summed over ranks would be added once a rank.
    const bool bias = name.ends_with(".bias");
    return bias ? placer.take() : placer.on(tensor_axes(mesh), Placement::sharded(1)).take();
  }
  if (contains(name, {"k_proj.", "v_proj."})) {
    return placer.on({"tp", "kv"}, Placement::sharded(0)).take();
  }
  return placer.on(tensor_axes(mesh), Placement::sharded(0)).take();
}

}  // namespace

std::vector<std::string> tensor_axes(const Mesh& mesh) {
  if (mesh.find("kv") >= 0) return {"kv", "replica"};
  return {"tp"};
}

std::optional<Placements> llama_placements(const Value& value, const Mesh& mesh) {
  if (value.role == Role::kParameter) return parameter_placements(value.name, mesh);
  Placer placer(mesh);
  if (value.name == "loss_sum") return placer.on({"dp", "cp"}, Placement::partial()).take();
  if (value.name == "attention_start") return placer.on({"dp"}, Placement::sharded(0)).take();
  if (value.name == "rope_table" || value.name == "last_row") return placer.take();
  if (value.role == Role::kInput || value.name == "final") {
    return placer.on({"dp", "cp"}, Placement::sharded(0)).take();
  }
  return std::nullopt;
}

void check_llama_mesh(const LlamaConfig& config, const Mesh& mesh) {
  const int64_t kv = mesh.find("kv") >= 0 ? mesh.size("kv") : mesh.size("tp");
  const int64_t tensor = mesh.find("kv") >= 0 ? kv * mesh.size("replica") : kv;
  const auto require = [&](bool holds, std::string_view what, int64_t found,
                           std::string_view or_else = "") {
    if (holds) return;
    std::string would_do;
    for (int64_t degree = 1; degree <= found && degree <= 64; ++degree) {
      if (found % degree != 0) continue;
      would_do += fmt::format("{}{}", would_do.empty() ? "" : ", ", degree);
    }
    fail(ErrorCode::kUsage,
         "parallel.tensor is {} and cannot split the model's {}, which is {}: expected a divisor, "
         "one of {}{}",
         tensor, what, found, would_do, or_else);
  };
  require(config.num_attention_heads % tensor == 0, "num_attention_heads",
          config.num_attention_heads);
  require(config.num_key_value_heads % kv == 0, "num_key_value_heads", config.num_key_value_heads,
          ", or a multiple of it");
  require(config.intermediate_size % tensor == 0, "intermediate_size", config.intermediate_size);
  require(config.vocab_size % tensor == 0, "vocab_size", config.vocab_size,
          fmt::format("; or model.vocab_size = {}, with rows that no token uses",
                      (config.vocab_size + tensor - 1) / tensor * tensor));
  if (tensor > 1 && (config.attention_bias || config.mlp_bias)) {
    fail(
        ErrorCode::kUsage,
        "parallel.tensor is {} and the model has {}: biases of row-parallel products are not built "
        "yet, set parallel.tensor = 1",
        tensor, config.attention_bias ? "attention_bias" : "mlp_bias");
  }
  if (mesh.size("replica") > 1 && config.num_key_value_heads != kv) {
    fail(
        ErrorCode::kUsage,
        "parallel.kv_replication is {}: each rank must then hold one key-value head, and the model "
        "has num_key_value_heads = {} over {} ranks; expected {}",
        mesh.size("replica"), config.num_key_value_heads, kv,
        tensor % config.num_key_value_heads == 0 ? tensor / config.num_key_value_heads : 1);
  }
}

}  // namespace skein
