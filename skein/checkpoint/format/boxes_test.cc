#include "skein/checkpoint/format/boxes.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <numeric>
#include <random>

#include "skein/base/numbers/philox.h"

namespace skein {
namespace {

int64_t flat_index(const Box& box, const std::vector<int64_t>& position) {
  int64_t index = 0;
  for (int dim = 0; dim < box.shape.rank(); ++dim) {
    index = index * box.shape.dim(dim) + position[dim] - box.offset[dim];
  }
  return index;
}

bool contains(const Box& box, const std::vector<int64_t>& position) {
  for (int dim = 0; dim < box.shape.rank(); ++dim) {
    const int64_t inside = position[dim] - box.offset[dim];
    if (inside < 0 || inside >= box.shape.dim(dim)) return false;
  }
  return true;
}

// Every element that both boxes hold is visited once, at the right place in each.
TEST(Box, RunsAgreeWithCountingElementByElement) {
  const Philox random(1, RandomPurpose::kDataOrder, 0, 0);
  uint64_t draw = 0;
  const auto below = [&](int64_t limit) { return int64_t{random.word(draw++)} % limit; };
  for (int trial = 0; trial < 500; ++trial) {
    const int rank = static_cast<int>(below(4));
    Box boxes[2];
    Shape global;
    std::vector<int64_t> dims;
    for (int dim = 0; dim < rank; ++dim) dims.push_back(1 + below(5));
    for (Box& box : boxes) {
      std::vector<int64_t> sizes;
      for (int dim = 0; dim < rank; ++dim) {
        const int64_t start = below(dims[dim]);
        box.offset.push_back(start);
        sizes.push_back(1 + below(dims[dim] - start));
      }
      box.shape = Shape(sizes);
      ASSERT_TRUE(box.inside(Shape(dims)));
    }
    std::vector<std::pair<int64_t, int64_t>> expected, found;
    for (int64_t flat = 0; flat < Shape(dims).num_elements(); ++flat) {
      std::vector<int64_t> position(rank);
      int64_t rest = flat;
      for (int dim = rank - 1; dim >= 0; --dim) {
        position[dim] = rest % dims[dim];
        rest /= dims[dim];
      }
      if (contains(boxes[0], position) && contains(boxes[1], position)) {
        expected.emplace_back(flat_index(boxes[0], position), flat_index(boxes[1], position));
      }
    }
    for_each_run(boxes[0], boxes[1], [&](int64_t from, int64_t to, int64_t count) {
      for (int64_t i = 0; i < count; ++i) found.emplace_back(from + i, to + i);
    });
    EXPECT_EQ(found, expected);
  }
}

TEST(Box, WholeBoxesAreOneRun) {
  int runs = 0;
  const Box rows{{2, 0, 0}, {3, 4, 5}};
  for_each_run(Box::whole({9, 4, 5}), rows, [&](int64_t from, int64_t to, int64_t count) {
    ++runs;
    EXPECT_EQ(from, 40);
    EXPECT_EQ(to, 0);
    EXPECT_EQ(count, 60);
  });
  EXPECT_EQ(runs, 1);
}

// Element `index` of a box, row by row, as a position in the tensor.
std::vector<int64_t> position_of(const Box& box, int64_t index) {
  std::vector<int64_t> position = box.offset;
  for (int dim = box.shape.rank() - 1; dim >= 0; --dim) {
    position[dim] += index % box.shape.dim(dim);
    index /= box.shape.dim(dim);
  }
  return position;
}

// The boxes of a range hold its elements, each once and in order, and are few.
TEST(BoxesOfRange, AgreeWithCountingElementByElement) {
  const Philox random(2, RandomPurpose::kDataOrder, 0, 0);
  uint64_t draw = 0;
  const auto below = [&](int64_t limit) { return int64_t{random.word(draw++)} % limit; };
  for (int trial = 0; trial < 2000; ++trial) {
    const int rank = static_cast<int>(below(5));
    Box box;
    std::vector<int64_t> sizes;
    for (int dim = 0; dim < rank; ++dim) {
      box.offset.push_back(below(7));
      sizes.push_back(1 + below(4));
    }
    box.shape = Shape(sizes);
    FlatRange range{below(box.shape.num_elements() + 1), 0};
    range.count = below(box.shape.num_elements() - range.begin + 1);
    const std::vector<Box> boxes = boxes_of_range(box, range);
    EXPECT_LE(static_cast<int>(boxes.size()), std::max(1, 2 * rank - 1));
    int64_t next = range.begin;
    for (const Box& part : boxes) {
      for (int64_t i = 0; i < part.shape.num_elements(); ++i) {
        ASSERT_EQ(position_of(part, i), position_of(box, next++)) << box.to_string();
      }
    }
    EXPECT_EQ(next, range.begin + range.count) << box.to_string();
  }
}

TEST(BoxesOfRange, OfAMatrix) {
  const Box box{{10, 0}, {4, 5}};
  EXPECT_EQ(boxes_of_range(box, {0, 20}), std::vector{box});
  EXPECT_EQ(boxes_of_range(box, {3, 15}),
            (std::vector<Box>{{{10, 3}, {1, 2}}, {{11, 0}, {2, 5}}, {{13, 0}, {1, 3}}}));
  EXPECT_TRUE(boxes_of_range(box, {20, 0}).empty());
  EXPECT_THROW(boxes_of_range(box, {19, 2}), Error);
  EXPECT_THROW(boxes_of_range(box, {-1, 1}), Error);
  EXPECT_THROW(boxes_of_range(box, {INT64_MAX, INT64_MAX}), Error);
}

TEST(Box, TilingIsExact) {
  EXPECT_EQ(tiling_error({4, 4}, {{{0, 0}, {2, 4}}, {{2, 0}, {2, 2}}, {{2, 2}, {2, 2}}}), "");
  EXPECT_EQ(tiling_error({}, {{{}, {}}}), "");
  EXPECT_NE(tiling_error({}, {{{}, {}}, {{}, {}}}), "");
  EXPECT_NE(tiling_error({4, 4}, {}), "");
  EXPECT_NE(tiling_error({4, 4}, {{{0, 0}, {3, 4}}}), "");
  EXPECT_NE(tiling_error({4, 4}, {{{0, 0}, {2, 4}}, {{1, 0}, {2, 4}}}), "");
  EXPECT_NE(tiling_error({4, 4}, {{{0, 0}, {3, 4}}, {{2, 0}, {1, 4}}}), "");
  EXPECT_NE(tiling_error({4, 4}, {{{0, 0}, {5, 4}}}), "");
  EXPECT_NE(tiling_error({4}, {{{4}, {0}}}), "");
  EXPECT_NE(tiling_error({4}, {{{INT64_MAX}, {1}}}), "");
}

// Splits `box` at random into boxes, at most twice per dim.
void split_at_random(std::mt19937& random, const Box& box, int depth, std::vector<Box>& boxes) {
  const int dim = static_cast<int>(random() % box.shape.rank());
  const int64_t size = box.shape.dim(dim);
  if (depth == 0 || size == 1) return boxes.push_back(box);
  const auto cut = static_cast<int64_t>(1 + random() % (size - 1));
  Box low = box, high = box;
  low.shape.set_dim(dim, cut);
  high.offset[dim] += cut;
  high.shape.set_dim(dim, size - cut);
  split_at_random(random, low, depth - 1, boxes);
  split_at_random(random, high, depth - 1, boxes);
}

bool covers_once(const Shape& global, const std::vector<Box>& boxes) {
  std::vector<int> times(global.num_elements());
  for (const Box& box : boxes) {
    for_each_run(Box::whole(global), box, [&](int64_t from, int64_t, int64_t count) {
      for (int64_t i = from; i < from + count; ++i) ++times[i];
    });
  }
  return std::all_of(times.begin(), times.end(), [](int n) { return n == 1; });
}

TEST(Box, TilingAgreesWithCountingElementByElement) {
  std::mt19937 random(7);
  int num_wrong = 0;
  for (int trial = 0; trial < 3000; ++trial) {
    const Shape global = trial % 3 == 0 ? Shape{11} : trial % 3 == 1 ? Shape{6, 5} : Shape{3, 4, 5};
    std::vector<Box> boxes;
    split_at_random(random, Box::whole(global), static_cast<int>(random() % 5), boxes);
    std::shuffle(boxes.begin(), boxes.end(), random);
    for (auto changes = random() % 3; changes > 0; --changes) {  // some changes cancel, most do not
      Box& box = boxes[random() % boxes.size()];
      const int dim = static_cast<int>(random() % global.rank());
      if (random() % 2 == 0) {
        box.offset[dim] += box.offset[dim] + box.shape.dim(dim) < global.dim(dim) ? 1 : 0;
      } else {
        box = boxes[random() % boxes.size()];
      }
    }
    const bool right = covers_once(global, boxes);
    num_wrong += right ? 0 : 1;
    EXPECT_EQ(tiling_error(global, boxes).empty(), right) << trial;
  }
  EXPECT_GT(num_wrong, 500);
}

// Rows that begin at the same place: a scan of neighbours would compare all pairs of them.
TEST(Box, TilingOfManyColumnsIsAPass) {
  constexpr int64_t kColumns = 400'000;
  std::vector<Box> boxes;
  for (int64_t column = 0; column < kColumns; ++column) boxes.push_back({{0, column}, {1, 1}});
  const auto start = std::chrono::steady_clock::now();
  EXPECT_EQ(tiling_error({1, kColumns}, boxes), "");
  boxes.back() = boxes.front();
  EXPECT_NE(tiling_error({1, kColumns}, boxes), "");
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  EXPECT_LT(seconds.count(), 5);  // 10^11 pairs would take minutes
}

TEST(Box, PrintsWhateverItHolds) {
  EXPECT_EQ((Box{{0, 128}, {512, 128}}).to_string(), "[0:512, 128:256]");
  EXPECT_EQ((Box{{1}, {2, 3}}).to_string(), "[2, 3] at [1]");
  EXPECT_EQ((Box{{INT64_MAX}, {5}}).to_string(), fmt::format("[{0}:{0}]", INT64_MAX));
}

TEST(Box, ProductsAreChecked) {
  EXPECT_EQ(checked_bytes({3, 5}, 4), 60);
  EXPECT_EQ(checked_bytes({}, 2), 2);
  EXPECT_EQ(checked_bytes({INT64_MAX}, 2), std::nullopt);
  EXPECT_EQ(checked_bytes({-1, -1}, 1), std::nullopt);
}

}  // namespace
}  // namespace skein
