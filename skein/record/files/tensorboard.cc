#include "skein/record/files/tensorboard.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <utility>
#include <vector>

#include "skein/base/error.h"
#include "skein/record/files/events.h"
#include "skein/record/files/metrics_table.h"

namespace skein {
namespace {

constexpr std::array<uint32_t, 256> make_crc_table() {
  std::array<uint32_t, 256> table{};
  for (uint32_t byte = 0; byte < 256; ++byte) {
    uint32_t crc = byte;
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ (crc & 1 ? 0x82f63b78u : 0u);
    table[byte] = crc;
  }
  return table;
}
constexpr std::array<uint32_t, 256> kCrcTable = make_crc_table();

// Protobuf field numbers of tensorflow.Event, Summary, Summary.Value and SessionLog.
constexpr int kEventWallTime = 1, kEventStep = 2, kEventFileVersion = 3, kEventSummary = 5;
constexpr int kEventSessionLog = 7;
constexpr int kSummaryValue = 1, kValueTag = 1, kValueSimple = 2, kSessionStatus = 1;
constexpr uint64_t kSessionStart = 1;

enum WireType { kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5 };

void put_varint(std::string& out, uint64_t value) {
  for (; value >= 0x80; value >>= 7) out += static_cast<char>(value | 0x80);
  out += static_cast<char>(value);
}

template <typename Unsigned>
void put_little_endian(std::string& out, Unsigned value) {
  for (size_t byte = 0; byte < sizeof value; ++byte) out += static_cast<char>(value >> (8 * byte));
}

void put_key(std::string& out, int field, WireType type) {
  put_varint(out, static_cast<uint64_t>(field) << 3 | type);
}

void put_varint_field(std::string& out, int field, uint64_t value) {
  put_key(out, field, kVarint);
  put_varint(out, value);
}

void put_bytes_field(std::string& out, int field, std::string_view bytes) {
  put_key(out, field, kBytes);
  put_varint(out, bytes.size());
  out += bytes;
}

uint32_t masked_crc32c(std::string_view bytes) {
  return std::rotr(crc32c(bytes), 15) + 0xa282ead8u;
}

std::string frame(std::string_view event) {
  std::string record;
  put_little_endian<uint64_t>(record, event.size());
  put_little_endian(record, masked_crc32c(record));
  record += event;
  put_little_endian(record, masked_crc32c(event));
  return record;
}

// Begins an Event with its time and step. proto3 leaves out a number that is 0.
std::string begin_event(double time, int64_t step) {
  std::string event;
  put_key(event, kEventWallTime, kFixed64);
  put_little_endian(event, std::bit_cast<uint64_t>(time));
  if (step != 0) put_varint_field(event, kEventStep, static_cast<uint64_t>(step));
  return event;
}

std::string host_name() {
  char name[256] = {};
  if (::gethostname(name, sizeof name - 1) != 0 || name[0] == '\0') return "localhost";
  return name;
}

}  // namespace

uint32_t crc32c(std::string_view bytes) {
  uint32_t crc = ~0u;
  for (const char byte : bytes) crc = (crc >> 8) ^ kCrcTable[(crc ^ byte) & 0xff];
  return ~crc;
}

std::string tensorboard_version_record(double time) {
  std::string event = begin_event(time, 0);
  put_bytes_field(event, kEventFileVersion, "brain.Event:2");
  return frame(event);
}

std::string tensorboard_start_record(double time, int64_t step) {
  std::string event = begin_event(time, step);
  std::string session_log;
  put_varint_field(session_log, kSessionStatus, kSessionStart);
  put_bytes_field(event, kEventSessionLog, session_log);
  return frame(event);
}

std::string tensorboard_scalars_record(double time, int64_t step, std::span<const Scalar> scalars) {
  std::string summary;
  for (const Scalar& scalar : scalars) {
    std::string value;
    put_bytes_field(value, kValueTag, scalar.tag);
    // A member of a oneof is written even if it is 0.
    put_key(value, kValueSimple, kFixed32);
    put_little_endian(value, std::bit_cast<uint32_t>(scalar.value));
    put_bytes_field(summary, kSummaryValue, value);
  }
  std::string event = begin_event(time, step);
  put_bytes_field(event, kEventSummary, summary);
  return frame(event);
}

TensorBoardWriter::TensorBoardWriter(const fs::path& folder, int64_t first_step) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) fail(ErrorCode::kIo, "cannot create {}: {}", folder.string(), error.message());
  const double now = unix_time();
  FileDescriptor file;
  for (int attempt = 0; file.get() < 0; ++attempt) {
    path_ = folder / fmt::format("events.out.tfevents.{:010}.{}.{}.{}", static_cast<int64_t>(now),
                                 host_name(), ::getpid(), attempt);
    file = FileDescriptor(retry_interrupted([&] {
      return ::open(path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0644);
    }));
    if (file.get() < 0 && errno != EEXIST) {
      fail(errno_code(errno), "cannot create {}: {}", path_.string(), errno_text(errno));
    }
  }
  file_.emplace(std::move(file), path_, PatientFile::AfterATear::kRest);
  append(tensorboard_version_record(now));
  append(tensorboard_start_record(now, first_step));
}

void TensorBoardWriter::append(std::string_view record) { file_->append(record); }

void TensorBoardWriter::write(double time, int64_t step, std::span<const Scalar> scalars) {
  append(tensorboard_scalars_record(time, step, scalars));
}

namespace {

using Tagged = std::vector<std::pair<std::string, float>>;

// What one row of metrics.def adds to the scalars of a step.
struct AddScalars {
  const MetricsSample& sample;
  const Metric& metric;
  Tagged& scalars;

  void add(float value) const {
    if (!is_shown(metric, value)) return;
    if (metric.former.key != nullptr) scalars.emplace_back(metric.former.key, value);
    scalars.emplace_back(metric.key, value);
  }
  void operator()(int64_t StepMetrics::*member) const {
    add(static_cast<float>(sample.metrics.*member));
  }
  void operator()(int64_t MetricsSample::*member) const { add(static_cast<float>(sample.*member)); }
  void operator()(double StepMetrics::*member) const {
    add(static_cast<float>(sample.metrics.*member));
  }
  void operator()(float StepMetrics::*member) const { add(sample.metrics.*member); }
  void operator()(NamedFloats StepMetrics::*member) const {
    for (const auto& [name, value] : sample.metrics.*member) {
      scalars.emplace_back(std::string(metric.key) + "/" + name, value);
    }
  }
};

}  // namespace

void TensorBoardWriter::write_step(const StepMetrics& metrics, int64_t memory_bytes,
                                   int64_t spike_steps) {
  const MetricsSample sample{
      .metrics = metrics, .memory_bytes = memory_bytes, .spike_steps = spike_steps};
  std::vector<const Metric*> shown;
  for (const Metric& metric : metrics_table()) {
    if (metric.tensorboard > 0) shown.push_back(&metric);
  }
  std::sort(shown.begin(), shown.end(),
            [](const Metric* a, const Metric* b) { return a->tensorboard < b->tensorboard; });
  Tagged tagged;
  for (const Metric* metric : shown) {
    std::visit(AddScalars{sample, *metric, tagged}, metric->member);
  }
  std::vector<Scalar> scalars;
  for (const auto& [tag, value] : tagged) scalars.push_back({tag, value});
  write(metrics.time, metrics.step, scalars);
}

void TensorBoardWriter::write_validation(double time, int64_t step, const std::string& set,
                                         float validation_loss, float bits_per_byte) {
  const std::string of_set = set.empty() ? "" : "/" + set;
  const std::string tag = "validation_loss" + of_set;
  const std::string tag_of_bits = "validation_bits_per_byte" + of_set;
  std::vector<Scalar> scalars = {{tag, validation_loss}};
  if (bits_per_byte > 0) scalars.push_back({tag_of_bits, bits_per_byte});
  write(time, step, scalars);
}

void TensorBoardWriter::write_evaluation(double time, int64_t step,
                                         const std::vector<EvaluatedScore>& scores) {
  std::vector<std::string> tags;
  for (const EvaluatedScore& score : scores) {
    tags.push_back(fmt::format("evaluation/{}/{}", score.task, score.metric));
  }
  std::vector<Scalar> scalars;
  for (size_t i = 0; i < tags.size(); ++i) {
    scalars.push_back({tags[i], static_cast<float>(scores[i].value)});
  }
  write(time, step, scalars);
}

}  // namespace skein
