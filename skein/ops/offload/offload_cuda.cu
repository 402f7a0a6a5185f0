#include <map>
#include <memory>

#include "skein/base/threads/mutex.h"
#include "skein/ops/cuda/launch_cuda.h"

namespace skein {
namespace {

using namespace cuda;  // NOLINT(google-build-using-namespace)

// A stream of copies beside the stream of a device, and events at the ends of copies.
class CopyLane {
 public:
  CopyLane() {
    check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "cudaStreamCreate");
    check(cudaEventCreateWithFlags(&begun_, cudaEventDisableTiming), "cudaEventCreate");
  }
  ~CopyLane() {
    for (const auto& [channel, event] : ends_) cudaEventDestroy(event);
    cudaEventDestroy(begun_);
    cudaStreamDestroy(stream_);
  }
  CopyLane(const CopyLane&) = delete;
  CopyLane& operator=(const CopyLane&) = delete;

  // All programs of a device share one.
  static std::shared_ptr<CopyLane> beside(cudaStream_t stream) {
    static struct {
      Mutex mutex;
      std::map<cudaStream_t, std::weak_ptr<CopyLane>> by_stream SKEIN_GUARDED_BY(mutex);
    } lanes;
    const Lock lock(lanes.mutex);
    std::shared_ptr<CopyLane> lane = lanes.by_stream[stream].lock();
    if (lane == nullptr) lanes.by_stream[stream] = lane = std::make_shared<CopyLane>();
    return lane;
  }

  void add_channel(int64_t channel) {
    cudaEvent_t& end = ends_[channel];
    if (end == nullptr) {
      check(cudaEventCreateWithFlags(&end, cudaEventDisableTiming), "cudaEventCreate");
    }
  }

  // What it is given next runs after all that `stream` was given so far.
  cudaStream_t begin(cudaStream_t stream) const {
    check(cudaEventRecord(begun_, stream), "cudaEventRecord");
    check(cudaStreamWaitEvent(stream_, begun_, 0), "cudaStreamWaitEvent");
    return stream_;
  }
  void mark_end(int64_t channel) const {
    check(cudaEventRecord(ends_.at(channel), stream_), "cudaEventRecord");
  }
  void wait(int64_t channel, cudaStream_t stream) const {
    check(cudaStreamWaitEvent(stream, ends_.at(channel), 0), "cudaStreamWaitEvent");
  }

 private:
  cudaStream_t stream_ = nullptr;
  cudaEvent_t begun_ = nullptr;
  std::map<int64_t, cudaEvent_t> ends_;
};

std::shared_ptr<const void> prepare(const KernelCall& call) {
  auto lane = CopyLane::beside(stream_of(call));
  lane->add_channel(call.attrs.integer("channel"));
  return lane;
}

const CopyLane& lane_of(const KernelCall& call) {
  return *static_cast<const CopyLane*>(call.state.get());
}

// A copy engine does it, which takes no multiprocessor and finds out by itself which side is the
// host's.
void copy(const View& from, const View& to, cudaStream_t stream) {
  const auto bytes = [&](int64_t elements) {
    return static_cast<size_t>(elements * size_of(to.dtype));
  };
  if (to.rows() == 0 || to.cols() == 0) return;
  if (from.is_contiguous() && to.is_contiguous()) {
    check(cudaMemcpyAsync(to.data, from.data, bytes(to.rows() * to.cols()), cudaMemcpyDefault,
                          stream),
          "cudaMemcpyAsync");
  } else {
    check(cudaMemcpy2DAsync(to.data, bytes(to.row_stride), from.data, bytes(from.row_stride),
                            bytes(to.cols()), static_cast<size_t>(to.rows()), cudaMemcpyDefault,
                            stream),
          "cudaMemcpy2DAsync");
  }
}

void begin(const KernelCall& call) {
  const CopyLane& lane = lane_of(call);
  copy(call.inputs[0], call.outputs[0], lane.begin(stream_of(call)));
  lane.mark_end(call.attrs.integer("channel"));
}

void end(const KernelCall& call) {
  lane_of(call).wait(call.attrs.integer("channel"), stream_of(call));
}

}  // namespace

void add_offload_cuda_kernels(KernelTable& table) {
  table["stash"] = {.run = begin, .prepare = prepare};
  table["stash_end"] = {.run = end, .prepare = prepare};
  table["fetch"] = {.run = begin, .prepare = prepare};
  table["fetch_end"] = {.run = end, .prepare = prepare};
}

}  // namespace skein
