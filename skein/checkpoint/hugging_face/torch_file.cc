#include "skein/checkpoint/hugging_face/torch_file.h"

#include <algorithm>
#include <cstring>
#include <string_view>

#include "skein/base/error.h"
#include "skein/base/files/file.h"
#include "skein/base/files/lfs_pointer.h"
#include "skein/base/text/visible_text.h"
#include "skein/checkpoint/hugging_face/stored_zip.h"
#include "skein/checkpoint/hugging_face/torch_pickle.h"

namespace skein {
namespace {

constexpr std::string_view kZip = "PK\x03\x04";
constexpr std::string_view kPickle = "\x80";
constexpr std::string_view kRecord = "data.pkl";

// The line of Python that writes the tensors as safetensors.
std::string conversion(const std::string& what) {
  const fs::path path = what;
  const std::string out = (path.parent_path() / "model.safetensors").string();
  return fmt::format(
      "`python -c \"import torch; from safetensors.torch import save_file; "
      "save_file({{k: v.clone().contiguous() for k, v in torch.load('{}', map_location='cpu', "
      "weights_only=True).items()}}, '{}')\"` converts it",
      what, out);
}

void check_magic(std::string_view head, const std::string& what) {
  refuse_lfs_pointer(head.substr(0, 200), what);
  if (head.starts_with(kZip)) return;
  if (head.starts_with(kPickle)) {
    fail(ErrorCode::kUnsupported,
         "{}: in the format of torch before 1.6, a pickle without a zip file around it. {}", what,
         conversion(what));
  }
  fail(ErrorCode::kInvalid, "{}: not a file of torch.save: it begins with \"{}\"", what,
       visible_text(head.substr(0, 16), 16));
}

}  // namespace

std::vector<TorchTensor> parse_torch_file(std::span<const std::byte> file,
                                          const std::string& what) {
  const std::string_view text(reinterpret_cast<const char*>(file.data()), file.size());
  check_magic(text, what);
  const auto records = parse_stored_zip(file, what);
  std::string folder;
  for (const auto& [name, range] : records) {
    const bool is_record = name.ends_with(kRecord) && name.size() > kRecord.size() + 1 &&
                           name.find('/') == name.size() - kRecord.size() - 1;
    if (is_record) folder = name.substr(0, name.size() - kRecord.size());
  }
  const auto find = [&](std::string_view name) { return records.find(folder + std::string(name)); };
  if (folder.empty()) {
    fail(ErrorCode::kInvalid, "{}: a zip file, but not of torch.save: it holds no data.pkl", what);
  }
  if (find("constants.pkl") != records.end()) {
    fail(ErrorCode::kUnsupported,
         "{}: a program of TorchScript, not weights alone: expected what torch.save makes of a "
         "state_dict",
         what);
  }
  if (const auto order = find("byteorder"); order != records.end()) {
    const std::string_view found = text.substr(order->second.begin, order->second.num_bytes());
    if (found != "little") {
      fail(ErrorCode::kUnsupported, "{}: its byteorder is \"{}\", expected \"little\"", what,
           visible_text(found, 20));
    }
  }
  const StoredRange pickle = find(kRecord)->second;
  if (pickle.num_bytes() > kMaxPickleBytes) {
    fail(ErrorCode::kInvalid, "{}: data.pkl has {} bytes, expected at most {}", what,
         pickle.num_bytes(), kMaxPickleBytes);
  }
  const auto storage = [&](std::string_view key) {
    const auto found = find("data/" + std::string(key));
    if (found != records.end()) return found->second;
    fail(ErrorCode::kInvalid, "{}: the storage {} is missing in it", what, visible_text(key, 40));
  };
  return unpickle_state_dict(file.subspan(pickle.begin, pickle.num_bytes()), storage, what);
}

}  // namespace skein
