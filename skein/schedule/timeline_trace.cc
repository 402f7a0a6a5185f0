#include "skein/schedule/timeline_trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "skein/base/files/trace_file.h"

namespace skein {
namespace {

double microseconds(double seconds) { return seconds * 1e6; }

// The id of a flow, unique in a step: kind, chunk and micro-batch of the sending task.
std::string flow_id(const Task& sender) {
  return fmt::format("{}{}.{}", sender.kind == TaskKind::kForward ? 'F' : 'B', sender.chunk,
                     sender.micro_batch);
}

class TimelineWriter {
 public:
  TimelineWriter(const StepTimeline& timeline, const fs::path& path)
      : timeline_(timeline),
        num_stages_(static_cast<int64_t>(timeline.stages.size())),
        trace_(path) {
    for (const auto& spans : timeline.stages) {
      for (const TaskSpan& span : spans) last_chunk_ = std::max(last_chunk_, span.task.chunk);
    }
  }

  void run() {
    name("process_name", 0, "pipeline");
    for (int64_t stage = 0; stage < num_stages_; ++stage) {
      name("thread_name", stage, fmt::format("stage {}", stage));
      int64_t in_flight = 0;
      double last_end = 0;
      for (const TaskSpan& span : timeline_.stages[static_cast<size_t>(stage)]) {
        task(stage, span, last_end);
        flows(stage, span);
        const bool forward = span.task.kind == TaskKind::kForward;
        in_flight += forward ? 1 : -1;
        count(stage, forward ? span.start : span.end, in_flight);
        last_end = span.end;
      }
      update(stage);
    }
    trace_.end();
  }

 private:
  void name(std::string_view what, int64_t stage, const std::string& text) {
    trace_.event(R"("ph":"M","name":"{}","pid":0,"tid":{},"args":{{"name":"{}"}})", what, stage,
                 text);
  }

  void task(int64_t stage, const TaskSpan& span, double last_end) {
    const Task& task = span.task;
    const bool forward = task.kind == TaskKind::kForward;
    trace_.event(
        R"("ph":"X","name":"{}{}","cat":"{}","pid":0,"tid":{},"ts":{:.3f},"dur":{:.3f},)"
        R"("args":{{"micro_batch":{},"chunk":{},"slot":{},"waited_us":{:.3f}{}}})",
        forward ? 'F' : 'B', task.micro_batch, forward ? "forward" : "backward", stage,
        microseconds(span.start), microseconds(span.end - span.start), task.micro_batch, task.chunk,
        task.slot, microseconds(span.start - last_end),
        task.beside ? R"(,"beside":"the next backward, which it makes longer by this")" : "");
  }

  // One end of an arrow: it leaves the sender at its end and enters the receiver at its start.
  void flow(char phase, int64_t stage, double seconds, const Task& sender) {
    trace_.event(
        R"("ph":"{}","name":"{}","cat":"transfer","id":"{}","pid":0,"tid":{},"ts":{:.3f}{})", phase,
        sender.kind == TaskKind::kForward ? "activations" : "gradient", flow_id(sender), stage,
        microseconds(seconds), phase == 'f' ? R"(,"bp":"e")" : "");
  }

  void flows(int64_t stage, const TaskSpan& span) {
    if (num_stages_ == 1) return;
    const Task& task = span.task;
    const int64_t step = task.kind == TaskKind::kForward ? 1 : -1;
    const int64_t source = task.chunk - step;
    const int64_t target = task.chunk + step;
    if (source >= 0 && source <= last_chunk_)
      flow('f', stage, span.start, {task.kind, source, task.micro_batch});
    if (target >= 0 && target <= last_chunk_) flow('s', stage, span.end, task);
  }

  void count(int64_t stage, double seconds, int64_t in_flight) {
    trace_.event(
        R"("ph":"C","name":"in flight, stage {}","pid":0,"ts":{:.3f},"args":{{"micro_batches":{}}})",
        stage, microseconds(seconds), in_flight);
  }

  void update(int64_t stage) {
    const double seconds = timeline_.step_seconds - timeline_.update_start;
    if (seconds <= 0) return;
    trace_.event(
        R"("ph":"X","name":"update","cat":"update","pid":0,"tid":{},"ts":{:.3f},"dur":{:.3f},"args":{{}})",
        stage, microseconds(timeline_.update_start), microseconds(seconds));
  }

  const StepTimeline& timeline_;
  const int64_t num_stages_;
  int64_t last_chunk_ = 0;
  TraceFile trace_;
};

}  // namespace

void write_timeline(const StepTimeline& timeline, const fs::path& path) {
  TimelineWriter(timeline, path).run();
}

}  // namespace skein
