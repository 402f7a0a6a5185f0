// Metrics for Prometheus: the text exposition format 0.0.4, served over HTTP at GET /metrics.
//
// Source   https://prometheus.io/docs/instrumenting/exposition_formats/
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "skein/record/metrics.h"

namespace skein {

// The newest values of a run.
struct PrometheusSample {
  StepMetrics metrics;
  int64_t total_steps = 0;
  int64_t memory_bytes = 0;
  int64_t spike_steps = 0;  // steps that the current gradient spike has lasted
};

// "# HELP skein_loss ...\n# TYPE skein_loss gauge\nskein_loss 5.43\n..."
std::string prometheus_text(const PrometheusSample& sample);

// Serves the newest text from its own thread. For trusted networks only: it answers any client, one
// at a time, with a deadline of one second each.
// Errors   Error{kUsage} naming an address that cannot be bound.
// Threads  publish may be called from any thread and never waits for a client.
class PrometheusServer {
 public:
  // `address`: "host:port", such as "127.0.0.1:9100" or "[::1]:9100"; port 0 picks a free one.
  explicit PrometheusServer(const std::string& address);
  ~PrometheusServer();

  void publish(std::string text);
  int port() const;

 private:
  class Listener;
  std::unique_ptr<Listener> listener_;
};

}  // namespace skein
