#include "skein/checkpoint/hugging_face/torch_pickle.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>
#include <unordered_map>
#include <unordered_set>

#include "skein/base/error.h"
#include "skein/base/text/visible_text.h"
#include "skein/checkpoint/format/boxes.h"
#include "skein/checkpoint/hugging_face/torch_tensor.h"
#include "skein/checkpoint/hugging_face/torch_values.h"

namespace skein {
namespace {

using torch_values::Call;
using torch_values::Kind;
using torch_values::kStorages;
using torch_values::PickleBytes;
using torch_values::Value;

constexpr size_t kMaxValues = size_t{1} << 22;
constexpr size_t kMaxRank = 32, kMaxKeyBytes = 64;

class Unpickler : PickleBytes {
 public:
  Unpickler(std::span<const std::byte> pickle, const FindStorage& find_storage,
            const std::string& what)
      : PickleBytes(pickle, what), find_storage_(find_storage) {}

  std::vector<TorchTensor> state_dict() {
    while (step()) {
    }
    if (stack_.size() != 1) refuse("more than one object is left at its end");
    return tensors_of(values_[stack_.back()]);
  }

 private:
  // The stack.

  uint32_t push(Value value) {
    if (values_.size() >= kMaxValues) refuse("it holds too many objects");
    values_.push_back(std::move(value));
    stack_.push_back(static_cast<uint32_t>(values_.size() - 1));
    return stack_.back();
  }
  void push_number(Kind kind, int64_t number) { push({.kind = kind, .number = number}); }
  uint32_t pop() {
    if (stack_.empty()) refuse("it takes more than it has put down");
    const uint32_t value = stack_.back();
    stack_.pop_back();
    return value;
  }
  // What lies above the newest mark, without the mark.
  std::vector<uint32_t> pop_to_mark() {
    size_t begin = stack_.size();
    while (begin > 0 && values_[stack_[begin - 1]].kind != Kind::kMark) --begin;
    if (begin == 0) refuse("a mark is missing");
    std::vector<uint32_t> values(stack_.begin() + static_cast<int64_t>(begin), stack_.end());
    stack_.resize(begin - 1);
    return values;
  }
  Value& top(Kind kind) {
    if (stack_.empty() || values_[stack_.back()].kind != kind) {
      refuse(fmt::format("expected {}", kind_name(kind)));
    }
    return values_[stack_.back()];
  }
  void push_tuple(size_t count) {
    Value tuple{.kind = Kind::kTuple};
    for (size_t i = 0; i < count; ++i) tuple.values.push_back(pop());
    std::reverse(tuple.values.begin(), tuple.values.end());
    push(std::move(tuple));
  }
  void put(uint32_t key) {
    if (stack_.empty()) refuse("it remembers nothing");
    memo_[key] = stack_.back();
  }
  void get(uint32_t key) {
    const auto found = memo_.find(key);
    if (found == memo_.end()) refuse("it recalls what it did not put down");
    stack_.push_back(found->second);
  }

  // One opcode; false at the end.
  bool step() {
    const auto opcode = word<uint8_t>();
    if (take_scalar(opcode) || take_container(opcode)) return true;
    switch (opcode) {
      case 0x80:  // PROTO
        if (const int version = word<uint8_t>(); version != 2) {
          refuse(fmt::format("its protocol is {}, expected 2, which torch.save writes", version));
        }
        return true;
      case 'q':
        put(word<uint8_t>());
        return true;
      case 'r':
        put(word<uint32_t>());
        return true;
      case 'h':
        get(word<uint8_t>());
        return true;
      case 'j':
        get(word<uint32_t>());
        return true;
      case 'c':
        global();
        return true;
      case 'Q':
        push_storage();
        return true;
      case 'R':
        reduce();
        return true;
      case 'b':  // BUILD: a state_dict has notes of its modules' versions
        pop();
        top(Kind::kDict);
        return true;
      case '.':
        return false;
      default:
        refuse(fmt::format("the opcode {:#04x} is none that a state_dict has", opcode));
    }
  }

  bool take_scalar(uint8_t opcode) {
    switch (opcode) {
      case 'N':
        push({.kind = Kind::kNone});
        return true;
      case 0x88:
      case 0x89:
        push_number(Kind::kBool, opcode == 0x88 ? 1 : 0);
        return true;
      case 'J':
        push_number(Kind::kInteger, word<int32_t>());
        return true;
      case 'K':
        push_number(Kind::kInteger, word<uint8_t>());
        return true;
      case 'M':
        push_number(Kind::kInteger, word<uint16_t>());
        return true;
      case 0x8a:
        push_number(Kind::kInteger, long_integer());
        return true;
      case 'G':
        take(8);
        push({.kind = Kind::kFloat});
        return true;
      case 'X':
        push({.kind = Kind::kText, .text = take(word<uint32_t>())});
        return true;
      default:
        return false;
    }
  }

  // LONG1: up to 8 bytes, little-endian with a sign.
  int64_t long_integer() {
    const size_t bytes = word<uint8_t>();
    const std::string_view digits = take(bytes);
    if (bytes > 8) refuse("an integer has more than 64 bits");
    uint64_t value = 0;
    for (size_t i = 0; i < bytes; ++i) {
      value |= static_cast<uint64_t>(static_cast<uint8_t>(digits[i])) << (8 * i);
    }
    const bool is_negative = bytes > 0 && bytes < 8 && (digits.back() & 0x80) != 0;
    if (is_negative) value |= ~uint64_t{0} << (8 * bytes);
    return static_cast<int64_t>(value);
  }

  bool take_container(uint8_t opcode) {
    switch (opcode) {
      case '(':
        push({.kind = Kind::kMark});
        return true;
      case '}':
        push({.kind = Kind::kDict});
        return true;
      case ']':
        push({.kind = Kind::kList});
        return true;
      case ')':
      case 0x85:
      case 0x86:
      case 0x87:
        push_tuple(opcode == ')' ? 0 : opcode - 0x84);
        return true;
      case 't': {
        std::vector<uint32_t> values = pop_to_mark();
        push({.kind = Kind::kTuple, .values = std::move(values)});
        return true;
      }
      case 'a':
      case 's': {
        std::vector<uint32_t> values = {pop()};
        if (opcode == 's') values.insert(values.begin(), pop());
        append(opcode == 's' ? Kind::kDict : Kind::kList, values);
        return true;
      }
      case 'e':
      case 'u':
        append(opcode == 'u' ? Kind::kDict : Kind::kList, pop_to_mark());
        return true;
      default:
        return false;
    }
  }

  void append(Kind kind, const std::vector<uint32_t>& values) {
    Value& container = top(kind);
    if (kind == Kind::kDict && values.size() % 2 != 0) refuse("a key has no value");
    container.values.insert(container.values.end(), values.begin(), values.end());
  }

  // Names of Python.

  void global() {
    const std::string_view module = line(), name = line();
    if (module == "collections" && name == "OrderedDict") return push_call(Call::kOrderedDict);
    if (module == "torch._utils" && name == "_rebuild_tensor_v2") return push_call(Call::kTensor);
    if (module == "torch._utils" && name == "_rebuild_parameter") {
      return push_call(Call::kParameter);
    }
    for (size_t i = 0; module == "torch" && i < kStorages.size(); ++i) {
      if (kStorages[i].name != name) continue;
      return push_number(Kind::kStorageType, static_cast<int64_t>(i));
    }
    const bool is_torch = module == "torch" || module.starts_with("torch.") || module == "numpy" ||
                          module.starts_with("numpy.");
    fail(ErrorCode::kUnsupported, "{}: it names {}.{}, {}: expected tensors alone. {}", what_,
         visible_text(module, 100), visible_text(name, 100),
         is_torch ? "which is no part of a plain tensor" : "which would run code",
         is_torch ? "Save the model again with transformers' save_pretrained"
                  : "Do not load this file with torch.load either");
  }
  void push_call(Call call) { push_number(Kind::kCall, static_cast<int64_t>(call)); }

  // ('storage', torch.FloatStorage, '0', 'cpu', 12)
  void push_storage() {
    const Value& id = values_[pop()];
    const auto part = [&](size_t i, Kind kind) -> const Value& {
      if (id.kind != Kind::kTuple || id.values.size() != 5 || values_[id.values[i]].kind != kind) {
        refuse("a storage is not described as one");
      }
      return values_[id.values[i]];
    };
    if (part(0, Kind::kText).text != "storage") refuse("a storage is not described as one");
    TorchStorage storage;
    storage.dtype = kStorages[static_cast<size_t>(part(1, Kind::kStorageType).number)].dtype;
    const std::string_view key = part(2, Kind::kText).text;
    part(3, Kind::kText);
    if (key.size() > kMaxKeyBytes) refuse("a storage has a name that is too long");
    storage.elements = part(4, Kind::kInteger).number;
    storage.bytes = find_storage_(key);
    const int64_t element_bytes = safetensors_element_bytes(storage.dtype);
    const auto bytes =
        storage.elements < 0 ? std::nullopt : checked_product(storage.elements, element_bytes);
    if (!bytes || *bytes != storage.bytes.num_bytes()) {
      refuse(fmt::format("the storage {} has {} bytes, expected {} elements of {}",
                         visible_text(key, 40), storage.bytes.num_bytes(), storage.elements,
                         storage.dtype));
    }
    storages_.push_back(storage);
    push_number(Kind::kStorage, std::ssize(storages_) - 1);
  }

  void reduce() {
    const Value& arguments = values_[pop()];
    const Value& call = values_[pop()];
    if (call.kind != Kind::kCall || arguments.kind != Kind::kTuple) {
      refuse("it calls what is no function");
    }
    switch (static_cast<Call>(call.number)) {
      case Call::kOrderedDict:
        if (!arguments.values.empty()) refuse("an OrderedDict begins with something in it");
        push({.kind = Kind::kDict});
        return;
      case Call::kParameter:
        if (arguments.values.empty() || values_[arguments.values[0]].kind != Kind::kTensor) {
          refuse("a parameter is no tensor");
        }
        stack_.push_back(arguments.values[0]);
        return;
      case Call::kTensor:
        push_tensor(arguments);
        return;
    }
  }

  std::vector<int64_t> numbers(const Value& tuple) const {
    if (tuple.kind != Kind::kTuple || tuple.values.size() > kMaxRank) {
      refuse(fmt::format("sizes and strides are no tuple of up to {} numbers", kMaxRank));
    }
    std::vector<int64_t> result;
    for (const uint32_t value : tuple.values) {
      if (values_[value].kind != Kind::kInteger || values_[value].number < 0) {
        refuse("sizes and strides are no tuple of numbers from 0");
      }
      result.push_back(values_[value].number);
    }
    return result;
  }

  // (storage, offset, sizes, strides, requires_grad, hooks[, metadata])
  void push_tensor(const Value& arguments) {
    if (arguments.values.size() < 6 || arguments.values.size() > 7) {
      refuse("a tensor is not described as one");
    }
    const auto part = [&](size_t i) -> const Value& { return values_[arguments.values[i]]; };
    if (part(0).kind != Kind::kStorage || part(1).kind != Kind::kInteger) {
      refuse("a tensor is not described as one");
    }
    const TorchStorage& storage = storages_[static_cast<size_t>(part(0).number)];
    const int64_t offset = part(1).number;
    const std::vector<int64_t> sizes = numbers(part(2)), strides = numbers(part(3));
    if (sizes.size() != strides.size()) refuse("a tensor has more strides or fewer than sizes");
    try {
      tensors_.push_back(tensor_in_storage(storage, offset, sizes, strides));
    } catch (const Error& error) {
      refuse(error.what());
    }
    push_number(Kind::kTensor, std::ssize(tensors_) - 1);
  }

  // The result.

  std::vector<TorchTensor> tensors_of(const Value& dictionary) {
    if (dictionary.kind != Kind::kDict) {
      fail(ErrorCode::kInvalid, "{}: it holds {}, expected a dictionary of tensors", what_,
           kind_name(dictionary.kind));
    }
    std::vector<TorchTensor> result;
    std::unordered_set<std::string_view> seen;
    for (size_t i = 0; i < dictionary.values.size(); i += 2) {
      const Value& name = values_[dictionary.values[i]];
      const Value& value = values_[dictionary.values[i + 1]];
      if (name.kind != Kind::kText) refuse(fmt::format("a name is {}", kind_name(name.kind)));
      if (value.kind != Kind::kTensor) refuse_entry(dictionary, name.text, value.kind);
      if (!seen.insert(name.text).second) {
        refuse(fmt::format("tensor \"{}\" is there twice", visible_text(name.text, 200)));
      }
      result.push_back(tensors_[static_cast<size_t>(value.number)]);
      result.back().entry.name = name.text;
    }
    return result;
  }

  [[noreturn]] void refuse_entry(const Value& dictionary, std::string_view name, Kind kind) const {
    std::vector<std::string> keys;
    for (size_t i = 0; i < dictionary.values.size() && keys.size() < 5; i += 2) {
      keys.push_back(visible_text(values_[dictionary.values[i]].text, 40));
    }
    fail(ErrorCode::kInvalid,
         "{}: \"{}\" in it is {}, expected tensors alone; its first keys are {}. If it is a "
         "checkpoint of training, save its model with transformers' save_pretrained",
         what_, visible_text(name, 100), kind_name(kind), fmt::join(keys, ", "));
  }

  const FindStorage& find_storage_;
  std::vector<Value> values_;
  std::vector<uint32_t> stack_;  // indices of values_
  std::unordered_map<uint32_t, uint32_t> memo_;
  std::vector<TorchStorage> storages_;
  std::vector<TorchTensor> tensors_;
};

}  // namespace

std::vector<TorchTensor> unpickle_state_dict(std::span<const std::byte> pickle,
                                             const FindStorage& find_storage,
                                             const std::string& what) {
  return Unpickler(pickle, find_storage, what).state_dict();
}

}  // namespace skein
