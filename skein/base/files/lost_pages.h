// Reading a mapped file that was cut meanwhile, or whose disk fails, is a SIGBUS: a process dies of
// it and says nothing. While a LostPages lives, zeros take the place of what cannot be read of a
// MappedRegion, and whoever read it asks afterwards whether that happened.
//
// Threads  all may be called from any; several LostPages may live at a time
// Errors   of other memory: the signal ends the process, as ever
// Cost     require_no_lost_pages() is a load
#pragma once

#include <cstddef>
#include <span>

#include "skein/base/files/file.h"

namespace skein {

// What is mapped of the file `path`; moves, does not copy.
class MappedRegion {
 public:
  MappedRegion() = default;
  MappedRegion(std::span<const std::byte> bytes, const fs::path& path);
  MappedRegion(MappedRegion&& other) noexcept : place_(std::exchange(other.place_, nullptr)) {}
  MappedRegion& operator=(MappedRegion&& other) noexcept {
    std::swap(place_, other.place_);
    return *this;
  }
  ~MappedRegion();

  struct Place;

 private:
  Place* place_ = nullptr;
};

class LostPages {
 public:
  LostPages();
  ~LostPages();
  LostPages(const LostPages&) = delete;
  LostPages& operator=(const LostPages&) = delete;
};

// Throws Error{kInvalid} for a region whose file became shorter, Error{kIo} for one whose disk
// failed, where a part of it was read as zeros.
void require_no_lost_pages();

}  // namespace skein
