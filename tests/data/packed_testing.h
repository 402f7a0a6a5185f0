// Files in compressions and archives, for the tests of ingestion.
#pragma once

#include <arrow/util/compression.h>
#include <fmt/format.h>
#include <lzma.h>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace skein {

// By a codec of Arrow's library, a whole file.
inline std::string packed(std::string_view text, arrow::Compression::type type) {
  const auto codec = arrow::util::Codec::Create(type).ValueOrDie();
  const auto compressor = codec->MakeCompressor().ValueOrDie();
  std::string out(text.size() * 2 + (size_t{1} << 20), '\0');
  auto* to = reinterpret_cast<uint8_t*>(out.data());
  const auto room = [&](int64_t used) { return static_cast<int64_t>(out.size()) - used; };
  int64_t count = 0;
  while (!text.empty()) {
    const auto step =
        compressor
            ->Compress(static_cast<int64_t>(text.size()),
                       reinterpret_cast<const uint8_t*>(text.data()), room(count), to + count)
            .ValueOrDie();
    text.remove_prefix(static_cast<size_t>(step.bytes_read));
    count += step.bytes_written;
  }
  count += compressor->End(room(count), to + count).ValueOrDie().bytes_written;
  return out.substr(0, static_cast<size_t>(count));
}

inline std::string bzip2(std::string_view text) { return packed(text, arrow::Compression::BZ2); }

inline std::string xz(std::string_view text) {
  std::string out(lzma_stream_buffer_bound(text.size()), '\0');
  size_t count = 0;
  lzma_options_lzma options;
  lzma_lzma_preset(&options, 0);
  lzma_filter filters[] = {{LZMA_FILTER_LZMA2, &options}, {LZMA_VLI_UNKNOWN, nullptr}};
  const lzma_ret status = lzma_stream_buffer_encode(
      filters, LZMA_CHECK_CRC64, nullptr, reinterpret_cast<const uint8_t*>(text.data()),
      text.size(), reinterpret_cast<uint8_t*>(out.data()), &count, out.size());
  return status == LZMA_OK ? out.substr(0, count) : "";
}

// The same as if it had been made with a dictionary of 2 << (code / 2 + 11) bytes; `code` is even.
inline std::string with_dictionary(std::string file, char code) {
  constexpr size_t kBegin = 12;  // of the header of the first block
  const size_t size = (static_cast<uint8_t>(file[kBegin]) + size_t{1}) * 4;
  file[file.find("\x21\x01", kBegin) + 2] = code;
  const uint32_t sum =
      lzma_crc32(reinterpret_cast<const uint8_t*>(file.data()) + kBegin, size - 4, 0);
  for (size_t i = 0; i < 4; ++i) {
    file[kBegin + size - 4 + i] = static_cast<char>(sum >> (8 * i) & 0xff);
  }
  return file;
}

// A header and its content, as ustar has them.
inline std::string tar_entry(const std::string& name, const std::string& content, char type = '0',
                             const std::string& target = "") {
  std::string block(512, '\0');
  const auto put = [&](size_t at, const std::string& text) {
    block.replace(at, text.size(), text);
  };
  put(0, name.substr(0, 100));
  put(100, "0000644");
  put(108, "0000000");
  put(116, "0000000");
  put(124, fmt::format("{:011o}", content.size()));
  put(136, "00000000000");
  put(148, "        ");
  block[156] = type;
  put(157, target);
  put(257, std::string("ustar\00000", 8));
  int sum = 0;
  for (const char byte : block) sum += static_cast<uint8_t>(byte);
  put(148, fmt::format("{:06o}", sum) + std::string("\0 ", 2));
  return block + content + std::string((512 - content.size() % 512) % 512, '\0');
}

inline std::string tar(const std::vector<std::pair<std::string, std::string>>& members) {
  std::string archive;
  for (const auto& [name, content] : members) archive += tar_entry(name, content);
  return archive + std::string(1024, '\0');
}

// "LENGTH KEY=VALUE\n"
inline std::string pax_record(const std::string& key, const std::string& value) {
  const size_t bare = key.size() + value.size() + 3;
  size_t length = bare + 1;
  while (length != bare + std::to_string(length).size()) ++length;
  return fmt::format("{} {}={}\n", length, key, value);
}

}  // namespace skein
