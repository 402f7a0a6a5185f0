#include "skein/record/prometheus_text.h"

namespace skein {

std::string PrometheusText::label(const char* name, std::string_view value) {
  std::string escaped;
  for (const char c : value) {
    if (c == '\\' || c == '"') escaped += '\\';
    escaped += c == '\n' ? "\\n" : std::string(1, c);
  }
  return fmt::format("{}=\"{}\"", name, escaped);
}

void add_step_metrics(PrometheusText& text, const PrometheusSample& sample) {
  const StepMetrics& metrics = sample.metrics;
  const auto gauge = [&](const char* name, auto value, const char* help) {
    text.gauge(name, value, help);
  };
  gauge("step", metrics.step, "The newest step; 1 is the first update.");
  gauge("steps_planned", sample.total_steps, "Steps of the whole run.");
  gauge("loss", metrics.loss, "Mean cross-entropy per token of the newest step, in nats.");
  gauge("learning_rate", metrics.learning_rate, "Learning rate of the newest step.");
  gauge("grad_norm", metrics.grad_norm, "Global gradient norm before clipping.");
  gauge("param_norm", metrics.param_norm, "Global norm of the parameters.");
  text.counter("tokens_total", metrics.tokens, "Tokens trained on since the run began.");
  gauge("epoch", metrics.epoch, "How often the corpus was read since the run began.");
  gauge("tokens_per_second", metrics.tokens_per_s, "Throughput of the newest step.");
  gauge("step_seconds", metrics.step_ms / 1000, "Wall time of the newest step.");
  gauge("data_wait_seconds", metrics.data_wait_ms / 1000, "Waiting for data in the newest step.");
  gauge("checkpoint_stall_seconds", metrics.checkpoint_stall_ms / 1000,
        "Standing still for a checkpoint in the newest step.");
  gauge("replication_stall_seconds", metrics.replication_stall_ms / 1000,
        "Standing still for a copy of the state in memory, in the newest step.");
  gauge("comm_exposed_seconds", metrics.comm_exposed_ms / 1000,
        "Communication that no computation hid in the newest step.");
  gauge("state_check_seconds", metrics.state_check_ms / 1000,
        "Looking for silent corruption of the state in the newest step.");
  gauge("model_flops_utilization", metrics.matmul_ceiling_share,
        "matmul_ceiling_share, under its name of before.");
  gauge("matmul_ceiling_share", metrics.matmul_ceiling_share,
        "Share of the measured matrix-product rate of all ranks, 0 to 1.");
  if (metrics.peak_utilization > 0) {
    gauge("peak_utilization", metrics.peak_utilization,
          "Share of the matrix-product rate that the maker of the device advertises, 0 to 1.");
  }
  if (!metrics.epochs.empty()) {
    text.family("source_epochs", "gauge", "How often each of several corpora was read.");
    for (const auto& [source, epochs] : metrics.epochs) {
      text.sample(epochs, PrometheusText::label("source", source));
    }
  }
  gauge("memory_bytes", sample.memory_bytes, "Memory of the arenas.");
  gauge("grad_spike_steps", sample.spike_steps,
        "Steps that the present gradient spike has lasted.");
  gauge("last_step_timestamp_seconds", metrics.time, "Unix time at the end of the newest step.");
}

}  // namespace skein
