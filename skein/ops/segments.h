// The elements of many tensors as one list of segments, so that one parallel loop covers them all.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace skein {

struct TensorSegment {
  int64_t tensor, begin, count;  // elements [begin, begin + count) of the tensor
};

class SegmentList {
 public:
  explicit SegmentList(int64_t segment_elements) : segment_elements_(segment_elements) {}

  void add_tensor(int64_t elements) {
    elements_.push_back(elements);
    first_.push_back(first_.back() + (elements + segment_elements_ - 1) / segment_elements_);
  }
  int64_t size() const { return first_.back(); }
  TensorSegment operator[](int64_t index) const {
    const auto after = std::upper_bound(first_.begin(), first_.end(), index);
    const int64_t tensor = after - first_.begin() - 1;
    const int64_t begin = (index - first_[tensor]) * segment_elements_;
    return {tensor, begin, std::min(segment_elements_, elements_[tensor] - begin)};
  }

 private:
  int64_t segment_elements_;
  std::vector<int64_t> elements_;
  std::vector<int64_t> first_ = {0};  // segments before each tensor, and all
};

}  // namespace skein
