#include "skein/checkpoint/format/safetensors_writer.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <unordered_set>

#include "skein/base/error.h"
#include "skein/base/numbers/hash.h"
#include "skein/base/text/json_text.h"
#include "skein/base/text/units.h"
#include "skein/checkpoint/format/boxes.h"
#include "skein/checkpoint/format/safetensors.h"

namespace skein {
namespace {

// Small enough to be hashed and written while it is in the cache.
constexpr size_t kWriteBytes = size_t{4} << 20;

std::string quoted(const std::string& text) {
  try {
    return exact_json(Json(text), "the header of a safetensors file");
  } catch (const Json::exception&) {
    fail(ErrorCode::kInvalid, "tensor name or metadata of {} bytes is not UTF-8", text.size());
  }
}

std::string header_text(std::span<const SafetensorsTensor> tensors, const SafetensorsLayout& layout,
                        const std::map<std::string, std::string>& metadata) {
  std::string json = "{";
  if (!metadata.empty()) {
    json += "\"__metadata__\":{";
    for (const auto& [key, value] : metadata) json += quoted(key) + ":" + quoted(value) + ",";
    json.back() = '}';
    json += ",";
  }
  for (const size_t index : layout.order) {
    const SafetensorsTensor& tensor = tensors[index];
    json += fmt::format(R"({}:{{"dtype":"{}","shape":{},"data_offsets":[{},{}]}},)",
                        quoted(tensor.name), to_safetensors_dtype(tensor.dtype),
                        exact_json(Json(tensor.shape.dims()), "the header of a safetensors file"),
                        layout.begin[index], layout.begin[index] + layout.bytes[index]);
  }
  if (json.size() > 1) json.pop_back();
  json += "}";
  json.resize(round_up(static_cast<int64_t>(json.size()), 8), ' ');
  return json;
}

}  // namespace

SafetensorsLayout plan_safetensors(std::span<const SafetensorsTensor> tensors,
                                   const std::map<std::string, std::string>& metadata) {
  SafetensorsLayout layout;
  layout.order.resize(tensors.size());
  layout.begin.resize(tensors.size());
  layout.bytes.resize(tensors.size());
  std::iota(layout.order.begin(), layout.order.end(), size_t{0});
  std::stable_sort(layout.order.begin(), layout.order.end(), [&](size_t a, size_t b) {
    return size_of(tensors[a].dtype) > size_of(tensors[b].dtype);
  });
  std::unordered_set<std::string> names = {"__metadata__"};
  int64_t data_bytes = 0;
  for (const size_t index : layout.order) {
    const SafetensorsTensor& tensor = tensors[index];
    if (!names.insert(tensor.name).second) {
      fail(ErrorCode::kInvalid, "two tensors of one file are named \"{}\", or it is reserved",
           tensor.name);
    }
    const auto bytes = checked_bytes(tensor.shape, size_of(tensor.dtype));
    layout.begin[index] = data_bytes;
    if (!bytes || __builtin_add_overflow(data_bytes, *bytes, &data_bytes)) {
      fail(ErrorCode::kInvalid, "tensor \"{}\" has shape {}: too large to write", tensor.name,
           tensor.shape.to_string());
    }
    layout.bytes[index] = *bytes;
  }
  const std::string json = header_text(tensors, layout, metadata);
  if (static_cast<int64_t>(json.size()) > kMaxSafetensorsHeaderBytes) {
    fail(ErrorCode::kInvalid, "a safetensors header of {} bytes is above the limit of {}",
         json.size(), kMaxSafetensorsHeaderBytes);
  }
  const uint64_t length = json.size();
  layout.header.assign(reinterpret_cast<const char*>(&length), sizeof length);
  layout.header += json;
  for (int64_t& begin : layout.begin) begin += static_cast<int64_t>(layout.header.size());
  layout.file_bytes = static_cast<int64_t>(layout.header.size()) + data_bytes;
  return layout;
}

SafetensorsWriter::SafetensorsWriter(const fs::path& path, const SafetensorsLayout& layout,
                                     const FileOps& ops)
    : path_(path), layout_(layout), file_(ops.open_output(path)) {
  file_->write(std::as_bytes(std::span(layout_.header)));
}

std::string SafetensorsWriter::write(std::span<const std::byte> bytes) {
  const auto all = static_cast<int64_t>(bytes.size());
  return write_pieces(bytes, std::span(&all, 1))[0];
}

std::vector<std::string> SafetensorsWriter::write_pieces(std::span<const std::byte> bytes,
                                                         std::span<const int64_t> piece_bytes) {
  if (next_ == layout_.order.size() ||
      static_cast<int64_t>(bytes.size()) != layout_.bytes[layout_.order[next_]]) {
    fail(ErrorCode::kInternal, "{}: {} bytes given for tensor {} of {}, which has another size",
         path_.string(), bytes.size(), next_, layout_.order.size());
  }
  ++next_;
  std::vector<std::string> checksums;
  for (const int64_t count : piece_bytes) {
    Xxh3Stream hash;
    auto piece = bytes.first(static_cast<size_t>(count));
    bytes = bytes.subspan(piece.size());
    while (!piece.empty()) {
      const auto part = piece.first(std::min(kWriteBytes, piece.size()));
      hash.update(part);
      file_->write(part);
      piece = piece.subspan(part.size());
    }
    checksums.push_back(hash.hex());
  }
  if (!bytes.empty()) {
    fail(ErrorCode::kInternal, "{}: the pieces of a tensor leave {} bytes of it over",
         path_.string(), bytes.size());
  }
  return checksums;
}

void SafetensorsWriter::finish() {
  if (next_ != layout_.order.size()) {
    fail(ErrorCode::kInternal, "{}: finished after {} of {} tensors", path_.string(), next_,
         layout_.order.size());
  }
  file_->finish();
  file_.reset();
}

}  // namespace skein
