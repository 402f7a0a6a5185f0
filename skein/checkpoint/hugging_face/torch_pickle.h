// An interpreter of the pickles that torch.save writes: it builds plain values and tensors, and
// calls nothing.
//
// Format   protocol 2; the opcodes that pickling a state_dict gives, and no others
// Errors   Error{kInvalid} for what is no such pickle; Error{kUnsupported} for a global that is
//          none of a tensor's, by its name
// Memory   at most some 100 bytes for each byte of the pickle
// Source   Python's pickletools.py; torch/_utils.py
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "skein/checkpoint/hugging_face/stored_zip.h"
#include "skein/checkpoint/hugging_face/torch_tensor.h"

namespace skein {

inline constexpr int64_t kMaxPickleBytes = int64_t{64} << 20;

// Finds the bytes of a storage by its key; throws where there is none.
using FindStorage = std::function<StoredRange(std::string_view key)>;

// The tensors of the dictionary that the pickle is.
std::vector<TorchTensor> unpickle_state_dict(std::span<const std::byte> pickle,
                                             const FindStorage& find_storage,
                                             const std::string& what);

}  // namespace skein
