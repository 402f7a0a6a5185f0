#include "skein/plan/process_bytes.h"

#include <algorithm>

#include "skein/config/batches.h"
#include "skein/data/lanes/blocks.h"
#include "skein/model/decoder.h"
#include "skein/objects/url.h"
#include "skein/optim/update.h"

namespace skein {
namespace {

constexpr int64_t kKilobyte = 1 << 10;
constexpr int64_t kProgram = 80'000'000;
constexpr int64_t kGpu = 1'000'000'000;
constexpr int kOtherThreads = 5;  // loader, saver, Gloo, Prometheus, signals
// Text has about 3 bytes per token, a token takes 4 bytes, and a growing vector holds up to twice
// that.
constexpr int64_t kTokenBytesPerByte = 2;
constexpr int64_t kStore = 150'000'000;
constexpr int64_t kWordCache = 39'000'000;  // bpe/word_cache.h, full

}  // namespace

int64_t process_bytes(const Config& config, const StepSpec& spec, int threads, bool has_gpu) {
  int64_t bytes = kProgram + (has_gpu ? kGpu : 0);
  bytes += (threads + kOtherThreads) * 512 * kKilobyte;
  bytes += spec.model.vocab_size * kKilobyte;
  int64_t lanes = 0;
  for (const int64_t sequences : batch_ramp(config).sizes()) {
    lanes = std::max(
        lanes, lanes_of_rows(num_lanes(config), sequences, rows_of(spec.layout).rows(sequences)));
  }
  const int64_t validations =
      std::ssize(config.data.validation_set) + (config.data.validation.empty() ? 0 : 1);
  const int64_t feeds = std::max<int64_t>(1, std::ssize(config.data.source)) + validations;
  bytes += (validations > 0 ? 2 : 1) * kWordCache;
  bytes += feeds * lanes * kTokenBytesPerByte * CorpusBlocks::segment_bytes(spec.sequence_length);
  if (is_object_url(config.checkpoint.dir)) bytes += kStore;
  const Mesh& mesh = spec.layout.mesh;
  // Sums under way over an axis, two of each chunk, and as much again of results.
  const int64_t under_way = std::max<int64_t>(3, 2 * spec.layout.virtual_stages);
  const int64_t packing = 2 * under_way * bucket_bytes(num_parameters(spec.model));
  for (const MeshAxis& axis : mesh.axes()) {
    bytes += (axis.size - 1) * 128 * kKilobyte;
    if (axis.size > 1 && axis.name != "pp" && !has_gpu) bytes += packing;
  }
  return bytes + (mesh.num_ranks() - 1) * 16 * kKilobyte;
}

int64_t process_address_bytes(int threads) {
  constexpr int64_t kStackBytes = 8 << 20, kArenaBytes = 64 << 20, kArenas = 4;
  return (threads + kOtherThreads) * kStackBytes + kArenas * kArenaBytes;
}

}  // namespace skein
