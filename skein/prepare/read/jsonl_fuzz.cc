// Bytes as JSON lines (plain or compressed), as JSON values, or as a table; the first byte chooses.
#include <arrow/util/utf8.h>

#include <cstdint>
#include <memory>
#include <string_view>

#include "skein/base/error.h"
#include "skein/chat/chat_renderer.h"
#include "skein/prepare/read/bytes/decompressor.h"
#include "skein/prepare/read/readers.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  arrow::util::InitializeUTF8();
  auto source = skein::read_memory({reinterpret_cast<const char*>(data) + 1, size - 1});
  if (data[0] == 'g') source = skein::gunzip(std::move(source), "fuzz");
  if (data[0] == 'z') source = skein::unzstd(std::move(source), "fuzz");
  if (data[0] == 'b') source = skein::unbzip2(std::move(source), "fuzz");
  if (data[0] == 'x') source = skein::unxz(std::move(source), "fuzz");
  if (data[0] == 'l') source = skein::unlz4(std::move(source), "fuzz");
  skein::ReadOptions options;
  options.max_document_bytes = 1 << 16;
  if (data[0] == 'n') options.text_column = "a.text";
  std::vector<skein::ByteRange> spans;
  if (data[0] == 'm') {
    static const auto renderer = std::make_shared<const skein::ChatRenderer>(skein::ChatOptions{
        .source = {"fuzz",
                   "{% for m in messages %}{{ m.role }}:{{ m.content }}{{ eos_token }}{% endfor "
                   "%}{% if add_generation_prompt %}assistant:{% endif %}",
                   {{"eos_token", "</s>"}}}});
    options.chat = renderer;
    options.utf8.invalid = skein::InvalidUtf8::kReplace;
    options.on_spans = [&](std::vector<skein::ByteRange> found) { spans = std::move(found); };
  }
  options.on_invalid_line = [](const skein::Error&) {};
  const auto visit = [&](std::string_view text, int64_t) {
    if (text.size() > (1 << 20) || !arrow::util::ValidateUTF8(text)) __builtin_trap();
    int64_t last = 0;
    for (const skein::ByteRange& span : spans) {
      if (span.begin < last || span.end <= span.begin) __builtin_trap();
      last = span.end;
    }
    if (last > static_cast<int64_t>(text.size())) __builtin_trap();
  };
  try {
    if (data[0] == 'j') {
      skein::read_json_values(std::move(source), "fuzz", options, visit);
    } else if (data[0] == 'c' || data[0] == 't') {
      skein::read_csv(std::move(source), "fuzz", data[0] == 'c' ? ',' : '\t', options, visit);
    } else if (data[0] == 'w') {
      skein::read_warc(std::move(source), "fuzz", options, visit);
    } else {
      skein::read_json_lines(std::move(source), "fuzz", options, visit);
    }
  } catch (const skein::Error&) {
  }
  return 0;
}
