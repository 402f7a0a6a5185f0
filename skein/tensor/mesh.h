// The device mesh: named axes, outermost first (pp, dp, cp, tp). A rank is its row-major position.
//
// An axis may be factored: for KV replication `tp` is replaced by `kv` and `replica`.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace skein {

struct MeshAxis {
  std::string name;
  int64_t size = 1;
  bool operator==(const MeshAxis&) const = default;
};

class Mesh {
 public:
  Mesh() = default;
  explicit Mesh(std::vector<MeshAxis> axes) : axes_(std::move(axes)) {}
  // The usual four axes.
  static Mesh standard(int64_t pp, int64_t dp, int64_t cp, int64_t tp);

  int num_axes() const { return static_cast<int>(axes_.size()); }
  const std::vector<MeshAxis>& axes() const { return axes_; }
  const MeshAxis& axis(int index) const { return axes_.at(index); }
  int find(std::string_view name) const;      // -1 where there is none
  int64_t size(std::string_view name) const;  // 1 where there is none
  int64_t num_ranks() const;

  // Of data and context, those of several ranks, whose ranks train the same parameters; the outer
  // one first.
  std::vector<int> axes_of_copies() const;

  // Where `rank` sits on each axis.
  std::vector<int64_t> coordinates(int64_t rank) const;
  // The ranks that differ from `rank` on this axis at most, in its order.
  std::vector<int64_t> ranks_along(std::string_view axis, int64_t rank) const;

  std::string to_string() const;  // "mesh(pp=1, dp=2, cp=1, tp=4)"
  bool operator==(const Mesh&) const = default;

 private:
  std::vector<MeshAxis> axes_;
};

}  // namespace skein
