#include "skein/ops/philox_stablehlo.h"

#include <algorithm>
#include <array>
#include <limits>

#include "skein/base/text/units.h"

namespace skein {
namespace {

using namespace stablehlo;  // NOLINT(google-build-using-namespace)

constexpr int kBlockShift = 2;  // four words a block
constexpr int64_t kBlockElements = 1 << kBlockShift;
constexpr uint64_t kLowHalf = 0xffffffff;

using Words = std::array<Tensor, 4>;

struct Product {
  Tensor high, low;
};

// The same from products of 16 by 16 bits, without numbers of 64 bits.
Product multiply_halves(const Tensor& a, uint32_t factor) {
  const auto word = [&a](uint32_t value) { return a.function().word(Element::kU32, value); };
  const Tensor half = word(0xffff), low = a & half, high = a >> 16;
  const Tensor factor_low = word(factor & 0xffff), factor_high = word(factor >> 16);
  const Tensor lowest = low * factor_low;
  const Tensor middle = high * factor_low + (lowest >> 16);
  const Tensor carried = low * factor_high + (middle & half);
  return {high * factor_high + (middle >> 16) + (carried >> 16), (carried << 16) | (lowest & half)};
}

// Of 32 by 32 bits.
Product multiply(const Tensor& a, uint32_t factor) {
  Function& to = a.function();
  if (to.is_narrow()) return multiply_halves(a, factor);
  const Tensor product = convert(a, Element::kU64) * to.word(Element::kU64, factor);
  return {convert(product >> 32, Element::kU32),
          convert(product & to.word(Element::kU64, kLowHalf), Element::kU32)};
}

// Philox::block. The words of the counter are scalars where all elements have the same.
Words block_of(Words counter, uint64_t seed) {
  Function& to = counter[0].function();
  auto key0 = static_cast<uint32_t>(seed), key1 = static_cast<uint32_t>(seed >> 32);
  for (int round = 0; round < 10; ++round) {
    const Product product0 = multiply(counter[0], 0xD2511F53);
    const Product product1 = multiply(counter[2], 0xCD9E8D57);
    counter = {product1.high ^ counter[1] ^ to.word(Element::kU32, key0), product1.low,
               product0.high ^ counter[3] ^ to.word(Element::kU32, key1), product0.low};
    key0 += 0x9E3779B9;
    key1 += 0xBB67AE85;
  }
  return counter;
}

// words[which]
Tensor choose(const Tensor& which, const Words& words) {
  Tensor chosen = words[3];
  for (int i = 2; i >= 0; --i) {
    chosen = select(compare(which, Compare::kEqual, i), words[i], chosen);
  }
  return chosen;
}

// Where elements `at` of the box are in the whole parameter.
Tensor place(const Tensor& at, const Tensor& first, const Tensor& run, const Tensor& stride) {
  return first + at / run * stride + at % run;
}
uint64_t place(uint64_t at, const LocalElements& local) {
  return local.first_element + at / local.run_elements * local.run_stride + at % local.run_elements;
}

bool is_whole_blocks(uint64_t elements) { return elements % kBlockElements == 0; }

}  // namespace

LocalPart::LocalPart(const RuleCall& call, Dims dims)
    : call_(call),
      dims_(std::move(dims)),
      num_elements_(Type{Element::kF32, dims_}.num_elements()) {
  for (const Attrs* one : call.attrs) replicas_.push_back(LocalElements::of(*one, num_elements_));
}

// Of every replica; one that has only padding may have any words.
bool LocalPart::is_one_run() const {
  return std::all_of(replicas_.begin(), replicas_.end(), [](const LocalElements& local) {
    const auto count = static_cast<uint64_t>(local.count);
    return count == 0 || local.range_begin % local.run_elements + count <= local.run_elements;
  });
}

bool LocalPart::has_whole_blocks() const {
  const bool one_run = is_one_run();
  return std::all_of(replicas_.begin(), replicas_.end(), [&](const LocalElements& local) {
    if (local.count == 0) return true;
    if (one_run) return is_whole_blocks(place(local.range_begin, local));
    return is_whole_blocks(local.range_begin) && is_whole_blocks(local.first_element) &&
           is_whole_blocks(local.run_elements) && is_whole_blocks(local.run_stride);
  });
}

// What holds all indices of elements.
Element LocalPart::index_element() const {
  uint64_t largest = 0;
  for (const LocalElements& local : replicas_) {
    const uint64_t end = local.range_begin + static_cast<uint64_t>(num_elements_);
    largest = std::max({largest, end, place(end, local), local.run_elements, local.run_stride});
  }
  return largest <= kLowHalf ? Element::kU32 : Element::kU64;
}

// The indices of elements in the whole parameter, or of blocks of 2^shift elements.
Tensor LocalPart::indices(int64_t count, int shift) const {
  const Element element = index_element();
  const auto attr = [&](std::string_view name, int64_t otherwise) {
    return call_.rank_integer(name, otherwise, element);
  };
  const Tensor begin = attr("range_begin", 0), first = attr("first_element", 0);
  const Tensor run = attr("run_elements", num_elements_), stride = attr("run_stride", 0);
  const Tensor steps = call_.to.iota(element, {count}, 0);
  if (is_one_run()) return steps + (place(begin, first, run, stride) >> shift);
  return place(steps + (begin >> shift), first >> shift, run >> shift, stride >> shift);
}

Tensor LocalPart::words(RandomPurpose purpose, const Tensor& step) const {
  const bool in_blocks = has_whole_blocks();
  const int64_t num_blocks = ceil_div(num_elements_, kBlockElements);
  const Tensor index =
      in_blocks ? indices(num_blocks, kBlockShift) : indices(num_elements_, /*shift=*/0);
  const Tensor block = in_blocks ? index : index >> kBlockShift;

  const auto word = [&](uint64_t value) { return call_.to.word(Element::kU32, value); };
  const bool is_wide = block.element() == Element::kU64;
  const Tensor low =
      is_wide ? convert(block & call_.to.word(Element::kU64, kLowHalf), Element::kU32) : block;
  const Tensor high = is_wide ? convert(block >> 32, Element::kU32) : word(0);
  const Tensor key = bitcast(reshape(step, {}), Element::kU32) ^
                     word(static_cast<uint64_t>(purpose) << 28 & kLowHalf);
  Words words = block_of({low, high, call_.argument_word("stream"), key},
                         static_cast<uint64_t>(call_.constants().integer("seed")));
  if (!in_blocks) {
    const Tensor which = convert(index & call_.to.word(index.element(), 3), Element::kU32);
    return reshape(choose(which, words), dims_);
  }
  const Dims blocks = {num_blocks, kBlockElements};
  for (Tensor& one : words) one = broadcast(one, blocks, {0});
  const Tensor all = choose(call_.to.iota(Element::kU32, blocks, 1), words);
  const Tensor row = reshape(all, {num_blocks * kBlockElements});
  return reshape(slice_dim(row, 0, 0, num_elements_), dims_);
}

Tensor LocalPart::without_padding(const Tensor& value) const {
  const bool has_padding =
      std::any_of(replicas_.begin(), replicas_.end(),
                  [&](const LocalElements& local) { return local.count < num_elements_; });
  if (!has_padding) return value;
  const bool is_long = num_elements_ > std::numeric_limits<int32_t>::max();
  const Element element = is_long ? Element::kI64 : Element::kI32;
  const Tensor is_element = compare(call_.to.iota(element, {num_elements_}, 0), Compare::kLess,
                                    call_.rank_integer("range_count", num_elements_, element));
  return select(reshape(is_element, dims_), value, call_.to.constant(value.element(), 0));
}

Tensor LocalPart::cut(const Tensor& held) const {
  const int64_t num_held = held.type().num_elements();
  if (num_held == num_elements_) return reshape(held, dims_);
  int64_t end = std::max(num_held, num_elements_);  // of the last part, with its padding
  for (const LocalElements& local : replicas_) {
    if (local.count > 0) end = std::max(end, local.weight_begin + num_elements_);
  }
  const bool is_long = end > std::numeric_limits<int32_t>::max();
  const Tensor begin =
      call_.rank_integer("weight_begin", 0, is_long ? Element::kI64 : Element::kI32);
  const Tensor row = pad_end(reshape(held, {num_held}), 0, end - num_held);
  return reshape(dynamic_slice(row, {begin}, {num_elements_}), dims_);
}

Tensor round_to_bf16(const Tensor& value, const Tensor& words) {
  const auto word = [&](uint32_t bits) { return value.function().word(Element::kU32, bits); };
  const Tensor bits = bitcast(value, Element::kU32);
  const Tensor is_nan = compare(value, Compare::kNotEqual, value);
  const Tensor rounded = select(is_nan, bits | word(0x00400000), bits + (words & word(0x0000ffff)));
  return bitcast(convert(rounded >> 16, Element::kU16), Element::kBF16);
}

}  // namespace skein
