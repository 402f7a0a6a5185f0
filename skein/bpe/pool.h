// Objects that one thread at a time works with, made when there are not enough.
#pragma once

#include <memory>
#include <vector>

#include "skein/base/threads/mutex.h"

namespace skein::bpe {

template <class T>
class Pool {
 public:
  class Lease {
   public:
    Lease(Pool& pool, std::unique_ptr<T> object) : pool_(pool), object_(std::move(object)) {}
    Lease(const Lease&) = delete;
    Lease& operator=(const Lease&) = delete;
    ~Lease() {
      const Lock lock(pool_.mutex_);
      pool_.unused_.push_back(std::move(object_));
    }
    T& operator*() { return *object_; }
    T* operator->() { return object_.get(); }

   private:
    Pool& pool_;
    std::unique_ptr<T> object_;
  };

  Lease take() {
    {
      const Lock lock(mutex_);
      if (!unused_.empty()) {
        std::unique_ptr<T> object = std::move(unused_.back());
        unused_.pop_back();
        return Lease(*this, std::move(object));
      }
    }
    return Lease(*this, std::make_unique<T>());
  }

 private:
  Mutex mutex_;
  std::vector<std::unique_ptr<T>> unused_ SKEIN_GUARDED_BY(mutex_);
};

}  // namespace skein::bpe
