// Streams, events, captures and graphs.
#include <chrono>
#include <condition_variable>
#include <deque>
#include <map>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "runtime_state.h"

using Work = std::function<void()>;
using cuda_emulation::Step;

struct CudaEmulationStream {
  int device = 0;
  std::deque<Step> queue;
  int64_t enqueued = 0, done = 0;
  bool running = false;
  int64_t stuck_at = -1;  // num_changes when it last got no further
};
// How many works of each stream come before, within a capture.
using Behind = std::map<cudaStream_t, int64_t>;
struct CudaEmulationEvent {
  cudaStream_t stream = nullptr;
  int64_t position = 0;  // works of its stream before it
  std::chrono::steady_clock::time_point time;
  bool recorded = false;
  int64_t capture = 0;  // the one in which it was recorded last; 0: none
  Behind behind;
};
struct CudaEmulationGraph {
  struct Captured {
    Work work;
    cudaStream_t stream;
    Behind behind;  // of other streams, and itself of its own
  };
  std::vector<Captured> captured;
  std::vector<Work> works;  // in the order in which they run
};
struct CudaEmulationGraphExec {
  std::vector<Work> works;
};

namespace cuda_emulation {
namespace {

std::recursive_mutex mutex;
std::condition_variable_any changed;  // something was enqueued, ran or was given up
int64_t num_changes = 0;
std::set<cudaStream_t> streams;
thread_local CudaEmulationGraph* capture = nullptr;
thread_local cudaStream_t capturing_stream = nullptr;
thread_local int64_t capture_number = 0, num_captures = 0;  // 0: none
thread_local std::map<cudaStream_t, Behind> captured;       // the streams that take part
thread_local bool capture_failed = false;

// Runs what comes next on the stream, or some of what that waits for. Returns whether anything ran.
bool advance(CudaEmulationStream& stream) {
  if (stream.running || stream.queue.empty() || stream.stuck_at == num_changes) return false;
  const int64_t before = num_changes;
  stream.running = true;
  const bool done = stream.queue.front()();
  stream.running = false;
  if (done) {
    stream.queue.pop_front();
    ++stream.done;
    note_change();
  }
  if (num_changes == before) stream.stuck_at = before;
  return num_changes != before;
}

// While the stream waits for what another thread of the host will enqueue, that thread gets the
// mutex.
void run_until(CudaEmulationStream& stream, int64_t position) {
  constexpr auto kPatience = std::chrono::minutes(2);
  while (stream.done < position && !stream.queue.empty()) {
    if (advance(stream)) continue;
    if (changed.wait_for(mutex, kPatience) == std::cv_status::timeout) {
      die("streams wait for each other, or for a thread that never comes");
    }
  }
}

// What other streams do runs as late as the waits of `first` allow: when it is waited for, or at
// the end. A wait that is missing then shows in the results.
std::vector<Work> in_lazy_order(const std::vector<CudaEmulationGraph::Captured>& captured,
                                cudaStream_t first) {
  std::map<cudaStream_t, std::vector<const CudaEmulationGraph::Captured*>> of_streams;
  for (const auto& one : captured) of_streams[one.stream].push_back(&one);
  std::map<cudaStream_t, int64_t> done;
  std::vector<Work> works;
  const std::function<void(cudaStream_t, int64_t)> run = [&](cudaStream_t stream, int64_t count) {
    while (done[stream] < count) {
      const auto& next = *of_streams[stream][static_cast<size_t>(done[stream]++)];
      for (const auto& [other, needed] : next.behind) {
        if (other != stream) run(other, needed);
      }
      works.push_back(next.work);
    }
  };
  run(first, std::ssize(of_streams[first]));
  for (const auto& [stream, of_stream] : of_streams) run(stream, std::ssize(of_stream));
  return works;
}

// Null is the default stream of the current device.
CudaEmulationStream& of(cudaStream_t stream) {
  static std::map<int, CudaEmulationStream> default_streams;
  if (stream != nullptr) return *stream;
  CudaEmulationStream& mine = default_streams[current_device];
  mine.device = current_device;
  streams.insert(&mine);
  return mine;
}

}  // namespace

bool is_capturing() { return capture != nullptr; }
cudaError_t forbidden() {
  capture_failed = true;
  return result(cudaErrorStreamCaptureUnsupported);
}
void run_all(cudaStream_t stream) { run_until(of(stream), of(stream).enqueued); }

cudaError_t enqueue(cudaStream_t stream, Work work) {
  const Lock lock(mutex);
  if (capture != nullptr) {
    if (!captured.contains(stream)) return forbidden();
    ++captured[stream][stream];
    capture->captured.push_back({std::move(work), stream, captured[stream]});
    return cudaSuccess;
  }
  const cudaError_t error = enqueue_step(stream, [work = std::move(work)] {
    if (broken == cudaSuccess) work();
    return true;
  });
  return error != cudaSuccess ? error : result(broken);
}

cudaError_t enqueue_step(cudaStream_t stream, Step step) {
  const Lock lock(mutex);
  if (capture != nullptr) return forbidden();
  ++of(stream).enqueued;
  of(stream).queue.push_back(std::move(step));
  note_change();
  return cudaSuccess;
}

void note_change() {
  ++num_changes;
  changed.notify_all();
}

std::recursive_mutex& device_mutex() { return mutex; }
std::condition_variable_any& something_changed() { return changed; }
bool advance(cudaStream_t stream) { return streams.contains(stream) && advance(*stream); }

}  // namespace cuda_emulation

using namespace cuda_emulation;  // NOLINT(google-build-using-namespace)

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned) {
  const Lock lock(mutex);
  *stream = new CudaEmulationStream{.device = current_device};
  streams.insert(*stream);
  return cudaSuccess;
}
cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned flags, int) {
  return cudaStreamCreateWithFlags(stream, flags);
}
cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
  *least = 0;
  *greatest = -5;
  return cudaSuccess;
}
cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  const Lock lock(mutex);
  run_all(stream);
  streams.erase(stream);
  delete stream;
  return cudaSuccess;
}
cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  const Lock lock(mutex);
  if (capture != nullptr) return forbidden();
  run_all(stream);
  return result(broken);
}
cudaError_t cudaStreamQuery(cudaStream_t stream) {
  const Lock lock(mutex);
  if (broken != cudaSuccess) return result(broken);
  if (of(stream).queue.empty()) return cudaSuccess;
  advance(of(stream));  // time goes by
  return cudaErrorNotReady;
}
cudaError_t cudaDeviceSynchronize() {
  const Lock lock(mutex);
  if (capture != nullptr) return forbidden();
  const std::set<cudaStream_t> all = streams;  // other threads may change it meanwhile
  for (const cudaStream_t stream : all) {
    if (streams.contains(stream) && stream->device == current_device) run_all(stream);
  }
  return result(broken);
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned) {
  *event = new CudaEmulationEvent;
  return cudaSuccess;
}
cudaError_t cudaEventDestroy(cudaEvent_t event) {
  delete event;
  return cudaSuccess;
}
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  const Lock lock(mutex);
  event->capture = capture_number;
  if (capture != nullptr) {
    if (!captured.contains(stream)) return forbidden();
    event->behind = captured[stream];
    return cudaSuccess;
  }
  enqueue(stream, [event] { event->time = std::chrono::steady_clock::now(); });
  event->stream = &of(stream);
  event->position = of(stream).enqueued;
  event->recorded = true;
  return cudaSuccess;
}
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned) {
  const Lock lock(mutex);
  if (event->capture != capture_number) {
    return capture != nullptr ? forbidden() : result(cudaErrorInvalidValue);
  }
  if (capture != nullptr) {
    Behind& mine = captured[stream];
    for (const auto& [other, works] : event->behind) mine[other] = std::max(mine[other], works);
    return cudaSuccess;
  }
  if (!event->recorded) return cudaSuccess;
  const cudaStream_t from = event->stream;
  const int64_t position = event->position;
  if (from == &of(stream)) return cudaSuccess;
  return enqueue_step(stream, [from, position] {
    while (streams.contains(from) && from->done < position) {
      if (!advance(*from)) return false;
    }
    return true;
  });
}
cudaError_t cudaEventQuery(cudaEvent_t event) {
  const Lock lock(mutex);
  if (!event->recorded || !streams.contains(event->stream)) return cudaSuccess;
  if (event->stream->done >= event->position) return cudaSuccess;
  advance(*event->stream);  // time goes by
  return cudaErrorNotReady;
}
cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  const Lock lock(mutex);
  if (capture != nullptr) return forbidden();
  if (event->recorded && streams.contains(event->stream))
    run_until(*event->stream, event->position);
  return result(broken);
}
cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t start, cudaEvent_t end) {
  const Lock lock(mutex);
  if (!start->recorded || !end->recorded) return result(cudaErrorInvalidResourceHandle);
  if (end->stream->done < end->position) return result(cudaErrorNotReady);
  *milliseconds = std::chrono::duration<float, std::milli>(end->time - start->time).count();
  return cudaSuccess;
}

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode) {
  const Lock lock(mutex);
  if (capture != nullptr || stream == nullptr) return result(cudaErrorStreamCaptureUnsupported);
  capture = new CudaEmulationGraph;
  capturing_stream = stream;
  capture_number = ++num_captures;
  captured = {{stream, {}}};
  capture_failed = false;
  return cudaSuccess;
}
cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph) {
  const Lock lock(mutex);
  *graph = nullptr;
  if (capture == nullptr || stream != capturing_stream) return result(cudaErrorInvalidValue);
  std::unique_ptr<CudaEmulationGraph> works(std::exchange(capture, nullptr));
  capture_number = 0;
  if (capture_failed) return result(cudaErrorStreamCaptureInvalidated);
  for (auto& [other, behind] : captured) {
    if (captured[stream][other] < behind[other]) return result(cudaErrorStreamCaptureUnjoined);
  }
  works->works = in_lazy_order(works->captured, stream);
  works->captured.clear();
  *graph = works.release();
  return cudaSuccess;
}
cudaError_t cudaStreamIsCapturing(cudaStream_t stream, cudaStreamCaptureStatus* status) {
  const Lock lock(mutex);
  *status = capture != nullptr && captured.contains(stream) ? cudaStreamCaptureStatusActive
                                                            : cudaStreamCaptureStatusNone;
  return cudaSuccess;
}
cudaError_t cudaGraphInstantiate(cudaGraphExec_t* executable, cudaGraph_t graph,
                                 unsigned long long) {  // NOLINT(google-runtime-int)
  *executable = new CudaEmulationGraphExec{graph->works};
  return cudaSuccess;
}
cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  delete graph;
  return cudaSuccess;
}
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t executable) {
  cudaDeviceSynchronize();
  delete executable;
  return cudaSuccess;
}
cudaError_t cudaGraphLaunch(cudaGraphExec_t executable, cudaStream_t stream) {
  return enqueue(stream, [executable] {
    for (const Work& work : executable->works) {
      if (broken == cudaSuccess) work();
    }
  });
}
