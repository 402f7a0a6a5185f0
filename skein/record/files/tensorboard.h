// TensorBoard event files, written without TensorBoard or protobuf.
//
// Format   A file is a sequence of TFRecords: uint64 length, uint32 masked crc32c of the length,
//          the bytes, uint32 masked crc32c of the bytes; little-endian. The bytes are a
//          tensorflow.Event message; the first one has file_version = "brain.Event:2". mask(crc) =
//          rotate_right(crc, 15) + 0xa282ead8.
// Source   tensorboard/compat/proto/{event,summary}.proto; TFRecord in the TensorFlow documentation
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "skein/base/files/file.h"
#include "skein/record/files/evaluated_score.h"
#include "skein/record/files/metrics.h"
#include "skein/record/files/patient_file.h"

namespace skein {

struct Scalar {
  std::string_view tag;
  float value;
};

// CRC-32C (Castagnoli), RFC 3720.
uint32_t crc32c(std::string_view bytes);

// One TFRecord each.
std::string tensorboard_version_record(double time);
std::string tensorboard_start_record(double time, int64_t step);
std::string tensorboard_scalars_record(double time, int64_t step, std::span<const Scalar> scalars);

// Writes one new event file `events.out.tfevents.<time>.<host>.<pid>.<n>` in `folder`, which is
// created. `first_step`: the first step that will be written; TensorBoard drops points of earlier
// files from that step on.
// Errors   Error{kIo | kNoSpace}.
// Threads  one at a time. Each record is one write(), so a crash leaves at most the last one
//          incomplete, which TensorBoard ignores.
class TensorBoardWriter {
 public:
  TensorBoardWriter(const fs::path& folder, int64_t first_step);

  void write(double time, int64_t step, std::span<const Scalar> scalars);
  // The metrics that have a place in TensorBoard (metrics.def).
  void write_step(const StepMetrics& metrics, int64_t memory_bytes, int64_t spike_steps);
  // `set`: the name of the corpus; empty for data.validation. `bits_per_byte`: 0: not known.
  void write_validation(double time, int64_t step, const std::string& set, float validation_loss,
                        float bits_per_byte = 0);
  // Tags "evaluation/TASK/METRIC".
  void write_evaluation(double time, int64_t step, const std::vector<EvaluatedScore>& scores);

  const fs::path& path() const { return path_; }
  // Everything is written, or an error says what is not.
  void finish() { file_->finish(); }

 private:
  void append(std::string_view record);

  fs::path path_;
  std::optional<PatientFile> file_;
};

}  // namespace skein
