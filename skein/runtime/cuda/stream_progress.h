// The step and the op that a GPU has come to. The GPU writes them into memory of the host, which
// can still be read after it failed.
//
// Cost     a kernel of one thread a place, some 2 us of the stream
#pragma once

#include <cuda_runtime.h>

#include <cstdint>
#include <string>
#include <vector>

namespace skein {

class StreamProgress {
 public:
  StreamProgress();
  ~StreamProgress();
  StreamProgress(const StreamProgress&) = delete;
  StreamProgress& operator=(const StreamProgress&) = delete;

  // Gives a place its number.
  int64_t name(const std::string& place);
  void pass_breadcrumb(int64_t place, cudaStream_t stream);
  void pass_step(int64_t step, cudaStream_t stream);

  // " in step 17, between …"; empty before the first of them.
  std::string text() const;

 private:
  struct Words {
    int64_t step, place;
  };
  volatile Words* words_ = nullptr;
  std::vector<std::string> places_{""};  // 0: none yet
};

}  // namespace skein
