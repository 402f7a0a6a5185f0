// A shared library that is loaded when a GPU first needs a function of it: the program starts,
// plans and trains on a CPU where it is not installed.
//
// Errors   Error{kUnsupported}: what is missing, and what to install
// Threads  any number
#pragma once

#include <string>
#include <utility>

#include "skein/base/threads/mutex.h"

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

  // A library that the program was linked with, as the emulation is in tests, comes before the
  // file.
  void* symbol(const char* name);

 private:
  void open() SKEIN_REQUIRES(mutex_);

  std::string title_;
  std::string file_;
  int version_;
  std::string advice_;
  Mutex mutex_;
  void* loaded_ SKEIN_GUARDED_BY(mutex_) = nullptr;  // never unloaded
};

}  // namespace skein::cuda

// The address of a function that a header declares.
#define SKEIN_LIBRARY_FUNCTION(library, name) \
  reinterpret_cast<decltype(&::name)>((library).symbol(#name))
