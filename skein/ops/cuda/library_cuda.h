// A shared library that is loaded when a GPU first needs a function of it: the program starts,
// plans and trains on a CPU where it is not installed.
//
// Errors   Error{kUnsupported}: what is missing, and what to install
// Threads  any number
#pragma once

#include <mutex>
#include <string>
#include <utility>

namespace skein::cuda {

class Library {
 public:
  // <file>.<version> is tried, then <file>, where the loader looks and then in the CUDA toolkit's
  // folder. `advice` says what to install.
  Library(std::string title, std::string file, int version, std::string advice)
      : title_(std::move(title)),
        file_(std::move(file)),
        version_(version),
        advice_(std::move(advice)) {}

  void* symbol(const char* name);

 private:
  void open();

  std::string title_;
  std::string file_;
  int version_;
  std::string advice_;
  std::mutex mutex_;
  void* loaded_ = nullptr;  // never unloaded
};

}  // namespace skein::cuda

// The address of a function that a header declares.
#ifdef SKEIN_CUDA_EMULATED
#define SKEIN_LIBRARY_FUNCTION(library, name) (static_cast<void>(library), &::name)
#else
#define SKEIN_LIBRARY_FUNCTION(library, name) \
  reinterpret_cast<decltype(&::name)>((library).symbol(#name))
#endif
