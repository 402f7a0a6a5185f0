#include "skein/record/files/op_trace.h"

#include <algorithm>
#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "skein/base/files/trace_file.h"

namespace skein {
namespace {

std::string shapes_of(const Instruction& instruction) {
  std::string text;
  for (const Operand& operand : instruction.inputs) {
    if (!operand.present()) continue;
    if (!text.empty()) text += " ";
    text += fmt::format("{}{}", dtype_name(operand.dtype), operand.shape.to_string());
  }
  return text;
}

// "all_gather over tp", or what the op is called.
std::string name_of_work(const Instruction& instruction) {
  const Attrs& attrs = instruction.attrs;
  if (!attrs.has("kind") || !attrs.has("axis")) return std::string(instruction.op->name);
  return fmt::format("{} over {}", attrs.text("kind"), attrs.text("axis"));
}

class OpTraceWriter {
 public:
  OpTraceWriter(const std::vector<OpSpan>& spans, int64_t rank, const std::filesystem::path& path)
      : spans_(spans), trace_(path), origin_(spans.empty() ? 0 : spans.front().start) {
    trace_.event(R"("ph":"M","name":"process_name","pid":0,"args":{{"name":"rank {}"}})", rank);
    trace_.event(R"("ph":"M","name":"thread_name","pid":0,"tid":0,"args":{{"name":"ops"}})");
  }

  void run() {
    for (const OpSpan& span : spans_) {
      op(span);
      work_beside(span);
    }
    trace_.end();
  }

 private:
  double microseconds(double seconds) const { return (seconds - origin_) * 1e6; }

  void op(const OpSpan& span) {
    const Cost cost = span.cost();
    const double seconds = std::max(span.end - span.start, 1e-9);
    trace_.event(
        R"("ph":"X","name":"{}","cat":"{}","pid":0,"tid":0,"ts":{:.3f},"dur":{:.3f},)"
        R"("args":{{"scope":"{}","shapes":"{}","calls":{},"slot":{},"gflops":{:.1f},"gb_per_s":{:.1f}{}}})",
        span.instruction->op->name, span.program, microseconds(span.start), seconds * 1e6,
        span.instruction->scope, shapes_of(*span.instruction), span.calls, span.slot,
        cost.flops / seconds * 1e-9,
        static_cast<double>(cost.bytes_read + cost.bytes_written) / seconds * 1e-9,
        span.instruction->ahead > 0 ? R"(,"of":"the forward of the next micro-batch")" : "");
  }

  // From the op that starts it to the one that ends it.
  void work_beside(const OpSpan& span) {
    const Instruction& instruction = *span.instruction;
    if (!instruction.attrs.has("channel")) return;
    const int64_t channel = instruction.attrs.integer("channel");
    if (!instruction.op->ended_by.empty()) {
      under_way_[{instruction.op->ended_by, channel}] = &span;
      return;
    }
    const auto begun = under_way_.find({instruction.op->name, channel});
    if (begun == under_way_.end()) return;
    half('b', *begun->second, begun->second->start);
    half('e', *begun->second, span.end);
    under_way_.erase(begun);
    ++next_id_;
  }

  void half(char phase, const OpSpan& begun, double seconds) {
    trace_.event(R"("ph":"{}","name":"{}","cat":"beside","id":{},"pid":0,"tid":0,"ts":{:.3f},)"
                 R"("args":{{"scope":"{}","shapes":"{}"}})",
                 phase, name_of_work(*begun.instruction), next_id_, microseconds(seconds),
                 begun.instruction->scope, shapes_of(*begun.instruction));
  }

  const std::vector<OpSpan>& spans_;
  TraceFile trace_;
  const double origin_;
  std::map<std::pair<std::string_view, int64_t>, const OpSpan*> under_way_;  // by end and channel
  int64_t next_id_ = 1;
};

}  // namespace

void write_op_trace(const std::vector<OpSpan>& spans, int64_t rank,
                    const std::filesystem::path& path) {
  OpTraceWriter(spans, rank, path).run();
}

}  // namespace skein
