// Bytes as JSON lines (plain, gzip or zstd), as JSON values, or as a table; the first byte chooses.
#include <arrow/util/utf8.h>

#include <cstdint>
#include <string_view>

#include "skein/base/error.h"
#include "skein/prepare/read/readers.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  arrow::util::InitializeUTF8();
  auto source = skein::read_memory({reinterpret_cast<const char*>(data) + 1, size - 1});
  if (data[0] == 'g') source = skein::gunzip(std::move(source), "fuzz");
  if (data[0] == 'z') source = skein::unzstd(std::move(source), "fuzz");
  skein::ReadOptions options;
  options.max_document_bytes = 1 << 16;
  options.on_invalid_line = [](const skein::Error&) {};
  const auto visit = [](std::string_view text, int64_t) {
    if (text.size() > (1 << 16) || !arrow::util::ValidateUTF8(text)) __builtin_trap();
  };
  try {
    if (data[0] == 'j') {
      skein::read_json_values(std::move(source), "fuzz", options, visit);
    } else if (data[0] == 'c' || data[0] == 't') {
      skein::read_csv(std::move(source), "fuzz", data[0] == 'c' ? ',' : '\t', options, visit);
    } else {
      skein::read_json_lines(std::move(source), "fuzz", options, visit);
    }
  } catch (const skein::Error&) {
  }
  return 0;
}
