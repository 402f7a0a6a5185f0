#include "skein/model/placement.h"

#include <map>

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

Placements placed(Split split, const Mesh& mesh) {
  Placer placer(mesh);
  switch (split) {
    case Split::kWhole:
      break;
    case Split::kRows:
      placer.on(tensor_axes(mesh), Placement::sharded(0));
      break;
    case Split::kKeyValueRows:
      placer.on({"tp", "kv"}, Placement::sharded(0));
      break;
    case Split::kColumns:
      placer.on(tensor_axes(mesh), Placement::sharded(1));
      break;
  }
  return placer.take();
}

}  // namespace

std::vector<std::string> tensor_axes(const Mesh& mesh) {
  if (mesh.find("kv") >= 0) return {"kv", "replica"};
  return {"tp"};
}

std::function<std::optional<Placements>(const Value&)> decoder_placements(
    const DecoderConfig& config, const Mesh& mesh) {
  std::map<std::string, Placements, std::less<>> known;
  for (const ParameterSpec& spec : parameter_specs(config)) {
    known[spec.name] = placed(spec.split, mesh);
  }
  for (const DecoderTable& table : decoder_tables(config, 1)) {
    known[table.name] = placed(Split::kWhole, mesh);
  }
  const Placements rows = Placer(mesh).on({"dp", "cp"}, Placement::sharded(0)).take();
  known[decoder_names::kTokens] = known[decoder_names::kLabels] = rows;
  known[decoder_names::kPositions] = known[decoder_names::kHeadInput] = rows;
  known[decoder_names::kAttentionStart] = Placer(mesh).on({"dp"}, Placement::sharded(0)).take();
  known[decoder_names::kLossSum] = Placer(mesh).on({"dp", "cp"}, Placement::partial()).take();
  known[decoder_names::kLastRow] = placed(Split::kWhole, mesh);
  return [known](const Value& value) -> std::optional<Placements> {
    const auto found = known.find(value.name);
    return found == known.end() ? std::nullopt : std::optional(found->second);
  };
}

int64_t vocabulary_ranks(const Mesh& mesh) {
  int64_t ranks = 1;
  for (const std::string& axis : tensor_axes(mesh)) ranks *= mesh.size(axis);
  return ranks;
}

std::vector<std::string> decoder_notes(const DecoderConfig& config, const Mesh& mesh,
                                       int64_t sequence_length) {
  std::vector<std::string> notes;
  for (const DecoderTable& table : decoder_tables(config, sequence_length)) {
    if (!table.choice.empty()) notes.push_back(table.choice);
  }
  const int64_t ranks = vocabulary_ranks(mesh), padded = padded_vocabulary(config, ranks);
  if (padded == config.vocab_size) return notes;
  notes.push_back(
      fmt::format("parallel.tensor = {} does not divide vocab_size {}: in memory the embedding and "
                  "the head are padded to {} rows; no token has one of the last {}, and the loss "
                  "leaves them out; checkpoints and exports have {}",
                  ranks, config.vocab_size, padded, padded - config.vocab_size, config.vocab_size));
  return notes;
}

void check_decoder_mesh(const DecoderConfig& config, const Mesh& mesh, std::string_view key) {
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
         "{} is {} and cannot split the model's {}, which is {}: expected a divisor, one of {}{}",
         key, tensor, what, found, would_do, or_else);
  };
  require(config.num_attention_heads % tensor == 0, "num_attention_heads",
          config.num_attention_heads);
  require(config.num_key_value_heads % kv == 0, "num_key_value_heads", config.num_key_value_heads,
          ", or a multiple of it");
  require(config.intermediate_size % tensor == 0, "intermediate_size", config.intermediate_size);
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
