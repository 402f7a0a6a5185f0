#include "skein/ops/cuda/library_cuda.h"

#include <dlfcn.h>

#include "skein/base/error.h"

namespace skein::cuda {
namespace {

constexpr const char* kFolders[] = {"", "/usr/local/cuda/lib64/"};

}  // namespace

void Library::open() {
  std::string why;
  for (const char* folder : kFolders) {
    for (const std::string& name : {fmt::format("{}.{}", file_, version_), file_}) {
      loaded_ = dlopen((folder + name).c_str(), RTLD_NOW | RTLD_LOCAL);
      if (loaded_ != nullptr) return;
      const char* error = dlerror();
      if (why.empty() && error != nullptr) why = error;
    }
  }
  fail(ErrorCode::kUnsupported, "a GPU needs {}, which does not load ({}): {}", title_, why,
       advice_);
}

void* Library::symbol(const char* name) {
  if (void* linked = dlsym(RTLD_DEFAULT, name)) return linked;
  const Lock lock(mutex_);
  if (loaded_ == nullptr) open();
  void* found = dlsym(loaded_, name);
  if (found != nullptr) return found;
  fail(ErrorCode::kUnsupported, "the {} that is installed has no {}: {}", title_, name, advice_);
}

}  // namespace skein::cuda
