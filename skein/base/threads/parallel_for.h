// Runs a function over the elements of a container on several threads: for work that waits, such as
// opening files on a network file system, or that is divided into many independent parts.
//
// Threads  at most `num_threads`, the caller among them; elements are begun in order, each once
// Errors   after all have ended, what the earliest failing element threw; elements that were not
//          begun by then are left out
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <exception>
#include <thread>
#include <vector>

namespace skein {

template <typename Container, typename Body>
void parallel_for_each(Container& elements, int num_threads, const Body& body) {
  const size_t count = elements.size();
  std::vector<std::exception_ptr> errors(count);
  std::atomic<size_t> next = 0;
  std::atomic<bool> failed = false;
  const auto run = [&] {
    for (size_t i = next++; i < count && !failed; i = next++) {
      try {
        body(elements[i]);
      } catch (...) {
        errors[i] = std::current_exception();
        failed = true;
      }
    }
  };
  std::vector<std::thread> threads;
  const size_t wanted = std::min(count, static_cast<size_t>(std::max(1, num_threads)));
  for (size_t i = 1; i < wanted; ++i) threads.emplace_back(run);
  run();
  for (std::thread& thread : threads) thread.join();
  for (const std::exception_ptr& error : errors) {
    if (error) std::rethrow_exception(error);
  }
}

}  // namespace skein
