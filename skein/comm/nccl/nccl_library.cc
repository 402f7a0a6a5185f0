#include "skein/comm/nccl/nccl_library.h"

#include <dlfcn.h>

#include "skein/base/error.h"

namespace skein {
namespace {

constexpr const char* kNames[] = {"libnccl.so.2", "/usr/local/cuda/lib64/libnccl.so.2"};
constexpr const char* kAdvice = "install NVIDIA's package libnccl2, 2.19 or later, on every node";

constexpr int kLeastVersion = 21900;  // the first where another thread may abort a communicator

void check_version(void* library) {
  int version = 0;
  const auto get = reinterpret_cast<decltype(&::ncclGetVersion)>(dlsym(library, "ncclGetVersion"));
  if (get != nullptr && get(&version) == ncclSuccess && version >= kLeastVersion) return;
  fail(ErrorCode::kUnsupported, "the NCCL that is installed is too old ({}): {}", version, kAdvice);
}

// Never unloaded. An NCCL that the program was linked with, as the emulation is in tests, comes
// first.
void* open_library() {
  if (dlsym(RTLD_DEFAULT, "ncclGetVersion") != nullptr) {
    check_version(RTLD_DEFAULT);
    return RTLD_DEFAULT;
  }
  std::string why;
  for (const char* name : kNames) {
    if (void* library = dlopen(name, RTLD_NOW | RTLD_LOCAL)) {
      check_version(library);
      return library;
    }
    const char* error = dlerror();
    if (why.empty() && error != nullptr) why = error;
  }
  fail(ErrorCode::kUnsupported, "several GPUs need NCCL, which does not load ({}): {}", why,
       kAdvice);
}

void* find(const char* name) {
  static void* const library = open_library();
  if (void* found = dlsym(library, name)) return found;
  fail(ErrorCode::kUnsupported, "the NCCL that is installed has no {}: {}", name, kAdvice);
}

#define SKEIN_NCCL_FUNCTION(name) reinterpret_cast<decltype(&::name)>(find(#name))

}  // namespace

const NcclLibrary& NcclLibrary::get() {
  static const NcclLibrary library = {
      .get_unique_id = SKEIN_NCCL_FUNCTION(ncclGetUniqueId),
      .comm_init_rank = SKEIN_NCCL_FUNCTION(ncclCommInitRank),
      .comm_abort = SKEIN_NCCL_FUNCTION(ncclCommAbort),
      .comm_get_async_error = SKEIN_NCCL_FUNCTION(ncclCommGetAsyncError),
      .get_error_string = SKEIN_NCCL_FUNCTION(ncclGetErrorString),
      .get_last_error = SKEIN_NCCL_FUNCTION(ncclGetLastError),
      .group_start = SKEIN_NCCL_FUNCTION(ncclGroupStart),
      .group_end = SKEIN_NCCL_FUNCTION(ncclGroupEnd),
      .send = SKEIN_NCCL_FUNCTION(ncclSend),
      .receive = SKEIN_NCCL_FUNCTION(ncclRecv),
      .all_gather = SKEIN_NCCL_FUNCTION(ncclAllGather),
      .reduce_scatter = SKEIN_NCCL_FUNCTION(ncclReduceScatter),
      .all_reduce = SKEIN_NCCL_FUNCTION(ncclAllReduce),
      .broadcast = SKEIN_NCCL_FUNCTION(ncclBroadcast),
  };
  return library;
}

std::string NcclLibrary::describe(ncclResult_t result) const {
  const std::string last = get_last_error(nullptr);
  const std::string text = get_error_string(result);
  return last.empty() ? text : fmt::format("{} ({})", text, last);
}

}  // namespace skein
