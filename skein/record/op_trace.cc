#include "skein/record/op_trace.h"

#include <algorithm>

#include "skein/base/trace_file.h"

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

}  // namespace

void write_op_trace(const std::vector<OpSpan>& spans, int64_t rank,
                    const std::filesystem::path& path) {
  TraceFile trace(path);
  trace.event(R"("ph":"M","name":"process_name","pid":0,"args":{{"name":"rank {}"}})", rank);
  trace.event(R"("ph":"M","name":"thread_name","pid":0,"tid":0,"args":{{"name":"ops"}})");
  const double origin = spans.empty() ? 0 : spans.front().start;
  for (const OpSpan& span : spans) {
    const Cost cost = span.cost();
    const double seconds = std::max(span.end - span.start, 1e-9);
    trace.event(
        R"("ph":"X","name":"{}","cat":"{}","pid":0,"tid":0,"ts":{:.3f},"dur":{:.3f},)"
        R"("args":{{"scope":"{}","shapes":"{}","calls":{},"slot":{},"gflops":{:.1f},"gb_per_s":{:.1f}{}}})",
        span.instruction->op->name, span.program, (span.start - origin) * 1e6, seconds * 1e6,
        span.instruction->scope, shapes_of(*span.instruction), span.calls, span.slot,
        cost.flops / seconds * 1e-9,
        static_cast<double>(cost.bytes_read + cost.bytes_written) / seconds * 1e-9,
        span.instruction->ahead > 0 ? R"(,"of":"the forward of the next micro-batch")" : "");
  }
  trace.end();
}

}  // namespace skein
