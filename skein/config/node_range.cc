#include "skein/config/node_range.h"

#include <charconv>
#include <numeric>

#include "skein/base/error.h"

namespace skein {

std::optional<int64_t> parse_count(std::string_view text) {
  int64_t count = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), count);
  if (error != std::errc() || end != text.data() + text.size() || count < 1) return std::nullopt;
  return count;
}

std::optional<NodeRange> parse_node_range(std::string_view nodes) {
  const size_t colon = nodes.find(':');
  const auto least = parse_count(nodes.substr(0, colon));
  const auto most = colon == nodes.npos ? least : parse_count(nodes.substr(colon + 1));
  if (!least || !most || *least > *most) return std::nullopt;
  return NodeRange{*least, *most};
}

int64_t workers_per_process(const Config& config) {
  const int64_t workers = config.launch.workers, asked = config.launch.workers_per_process;
  if (config.device.kind != "pjrt") {
    if (asked <= 1) return 1;
    fail(ErrorCode::kUsage,
         "launch.workers_per_process is {} and device.kind \"{}\": expected 1; only with \"pjrt\" "
         "a process has several workers",
         asked, config.device.kind);
  }
  if (asked > 0 && workers % asked != 0) {
    fail(ErrorCode::kUsage,
         "launch.workers_per_process is {}, which does not divide launch.workers, {}: each worker "
         "has a device of its own, and every process as many",
         asked, workers);
  }
  if (asked > 0) return asked;
  const ParallelConfig& parallel = config.parallel;
  if (parallel.pipeline == 1) return workers;
  return std::gcd(workers, parallel.tensor * parallel.context);
}

int64_t worker_processes(const Config& config) {
  return config.launch.workers / workers_per_process(config);
}

}  // namespace skein
