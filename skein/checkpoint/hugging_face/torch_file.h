// Reads what torch.save wrote of a state_dict (pytorch_model.bin): tensors are bytes of the file.
// No code of the file is ever run: its pickle is read by an interpreter that knows tensors alone.
//
// Format   a zip file of stored files (stored_zip.h): NAME/data.pkl, a pickle of protocol 2 of a
//          dictionary {name: tensor}; NAME/data/KEY, a storage each; NAME/byteorder
// Accepts  dict and OrderedDict of names to tensors: torch._utils._rebuild_tensor_v2 and
//          _rebuild_parameter of torch.*Storage. Several tensors may share a storage, with any
//          offset and strides inside it that reach no element twice. Everything else is refused by
//          its name, such as os.system
// Limits   a pickle of 64 MiB, 4,194,304 objects, 32 dims
// Errors   Error{kInvalid | kUnsupported} naming the file, what was found and what helps
// Source   torch/serialization.py and torch/_utils.py; Python's pickletools.py
#pragma once

#include <span>
#include <string>
#include <vector>

#include "skein/checkpoint/hugging_face/torch_tensor.h"

namespace skein {

// `file` is the whole file; `what` names it in errors. In the order of the dictionary.
std::vector<TorchTensor> parse_torch_file(std::span<const std::byte> file, const std::string& what);

}  // namespace skein
