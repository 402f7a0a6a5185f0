// The values that the interpreter of torch_pickle.h builds, and the bytes that it reads.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "skein/base/error.h"

namespace skein::torch_values {

struct StorageType {
  std::string_view name;   // torch.<name>
  std::string_view dtype;  // of safetensors
};
inline constexpr std::array<StorageType, 10> kStorages = {{
    {"FloatStorage", "F32"},
    {"HalfStorage", "F16"},
    {"BFloat16Storage", "BF16"},
    {"DoubleStorage", "F64"},
    {"LongStorage", "I64"},
    {"IntStorage", "I32"},
    {"ShortStorage", "I16"},
    {"CharStorage", "I8"},
    {"ByteStorage", "U8"},
    {"BoolStorage", "BOOL"},
}};

// Calls that are understood; none is made.
enum class Call { kOrderedDict, kTensor, kParameter };

struct Value {
  enum class Kind {
    kMark,
    kNone,
    kBool,
    kInteger,
    kFloat,
    kText,
    kTuple,
    kList,
    kDict,
    kCall,
    kStorageType,
    kStorage,
    kTensor
  };
  Kind kind = Kind::kNone;
  int64_t number = 0;            // kBool, kInteger, kCall, kStorageType (index); kStorage, kTensor
  std::string_view text;         // of the pickle
  std::vector<uint32_t> values;  // of tuples and lists; of dictionaries keys and values in turn
};
using Kind = Value::Kind;

inline std::string_view kind_name(Kind kind) {
  switch (kind) {
    case Kind::kMark:
      return "a mark";
    case Kind::kNone:
      return "None";
    case Kind::kBool:
      return "a truth value";
    case Kind::kInteger:
      return "an integer";
    case Kind::kFloat:
      return "a number";
    case Kind::kText:
      return "a string";
    case Kind::kTuple:
      return "a tuple";
    case Kind::kList:
      return "a list";
    case Kind::kDict:
      return "a dictionary";
    case Kind::kCall:
    case Kind::kStorageType:
      return "a class";
    case Kind::kStorage:
      return "a storage";
    case Kind::kTensor:
      return "a tensor";
  }
  return "";
}

// The bytes of a pickle, from the first on.
class PickleBytes {
 public:
  PickleBytes(std::span<const std::byte> pickle, const std::string& what)
      : what_(what), pickle_(pickle) {}

 protected:
  [[noreturn]] void refuse(const std::string& why) const {
    fail(ErrorCode::kInvalid, "{}: data.pkl is no pickle of tensors: {} (before byte {})", what_,
         why, at_);
  }
  std::string_view take(size_t bytes) {
    if (bytes > pickle_.size() - at_) refuse("it is cut off");
    const std::string_view text(reinterpret_cast<const char*>(pickle_.data()) + at_, bytes);
    at_ += bytes;
    return text;
  }
  template <typename Word>
  Word word() {
    Word value;
    std::memcpy(&value, take(sizeof(Word)).data(), sizeof(Word));
    return value;
  }
  std::string_view line() {
    const std::string_view rest(reinterpret_cast<const char*>(pickle_.data()) + at_,
                                pickle_.size() - at_);
    const size_t end = rest.find('\n');
    if (end == rest.npos) refuse("a name is cut off");
    at_ += end + 1;
    return rest.substr(0, end);
  }

  const std::string& what_;

 private:
  std::span<const std::byte> pickle_;
  size_t at_ = 0;
};

}  // namespace skein::torch_values
