// Compiled into each program separately, since the list of backends differs
// (cmake/SkeinCuda.cmake).
#include <algorithm>

#include "skein/backends/backend.h"
#include "skein/base/error.h"
#include "skein/ops/simd/cpu_kind.h"

namespace skein {

#define SKEIN_BACKEND(kind) extern const Backend kind##_backend;
#include "skein/backends/backends.def"
#undef SKEIN_BACKEND

std::vector<const Backend*> all_backends() {
  return {
#define SKEIN_BACKEND(kind) &kind##_backend,
#include "skein/backends/backends.def"
#undef SKEIN_BACKEND
  };
}

const Backend& find_backend_to_plan(std::string_view kind) {
  const std::vector<const Backend*> backends = all_backends();
  const auto found = std::find_if(backends.begin(), backends.end(),
                                  [&](const Backend* backend) { return backend->kind == kind; });
  if (found != backends.end()) return **found;
  fail(ErrorCode::kUsage, "device.kind is '{}': expected cpu, cuda, pjrt (or null, to plan)", kind);
}

const Backend& find_backend(std::string_view kind) {
  const Backend& backend = find_backend_to_plan(kind);
  if (!backend.only_plans.empty()) fail(ErrorCode::kUsage, "{}", backend.only_plans);
  return backend;
}

const Backend& best_backend() {
  const std::vector<const Backend*> backends = all_backends();
  return **std::find_if(backends.begin(), backends.end(),
                        [](const Backend* backend) { return backend->num_devices() > 0; });
}

std::unique_ptr<Device> make_device(const DeviceOptions& options) {
  const Backend& backend = find_backend(options.kind);
  if (backend.kind == "cpu") limit_cpu_kind("auto");  // or a variable would go unheard
  return backend.make(options, backend.kernels());
}

}  // namespace skein
