#include "skein/comm/nccl/nccl_calls.h"

#include "skein/comm/nccl/nccl_world.h"
#include "skein/comm/nccl/tree_sum_cuda.h"
#include "skein/comm/shares.h"

namespace skein {
namespace {

using Kind = CollectiveKind;

const char* at(const void* data, int64_t offset) { return static_cast<const char*>(data) + offset; }
char* at(void* data, int64_t offset) { return static_cast<char*>(data) + offset; }

ncclDataType_t type_of(DType dtype) {
  switch (dtype) {
    case DType::kF32:
      return ncclFloat32;
    case DType::kBF16:
      return ncclBfloat16;
    case DType::kF64:
      return ncclFloat64;
    case DType::kI32:
      break;
  }
  return ncclInt32;
}

void copy(void* to, const void* from, int64_t bytes, cudaStream_t stream) {
  if (to == from || bytes == 0) return;
  cuda::check(
      cudaMemcpyAsync(to, from, static_cast<size_t>(bytes), cudaMemcpyDeviceToDevice, stream),
      "a copy within the device");
}

class Calls {
 public:
  Calls(const NcclPost& to, const Collective& collective, const PlaceInGroup& place, Sums sums)
      : to_(to),
        collective_(collective),
        rank_(place.rank),
        size_(place.size),
        pairs_(place.pairs),
        sums_(sums) {}

  void post() {
    switch (collective_.kind) {
      case Kind::kAllGather:
        return gather();
      case Kind::kReduceScatter:
      case Kind::kAllReduce:
        return reduce();
      case Kind::kAllToAll:
        return exchange_blocks();
      case Kind::kBroadcast:
        return broadcast();
      case Kind::kSend:
      case Kind::kReceive:
        return pass_message();
      case Kind::kBarrier:
        return check_nccl(
            nccl().all_reduce(to_.spare, to_.spare, 1, ncclInt32, ncclSum, to_.comm, to_.stream));
    }
  }

 private:
  const NcclLibrary& nccl() const { return to_.nccl; }
  ByteSpan range(const CollectivePart& part, int rank) const {
    return share_of(collective_, part, size_, rank);
  }
  int64_t whole_bytes(const CollectivePart& part) const {
    return part.elements * size_of(collective_.dtype);
  }
  bool is_even(const CollectivePart& part) const {
    return share_elements(collective_, part, size_) * size_ == part.elements;
  }

  void send(const void* data, int64_t bytes, int peer) {
    if (bytes == 0) return;
    check_nccl(nccl().send(data, static_cast<size_t>(bytes), ncclInt8, peer, to_.comm, to_.stream));
  }
  void receive(void* data, int64_t bytes, int peer) {
    if (bytes == 0) return;
    check_nccl(
        nccl().receive(data, static_cast<size_t>(bytes), ncclInt8, peer, to_.comm, to_.stream));
  }
  // Runs the transfers of all pairs as one NCCL group: visit(part, its index, peer) posts them.
  template <typename Visit>
  void exchange(const Visit& visit) {
    NcclGroup calls(nccl());
    for (size_t i = 0; i < collective_.parts.size(); ++i) {
      for (int step = 1; step < size_; ++step) {
        visit(collective_.parts[i], i, (rank_ + step) % size_);
      }
    }
    calls.end();
  }

  // The queue has two members: the other one is its rank 0 or 1.
  void pass_message() {
    const int other = collective_.peer < rank_ ? 0 : 1;
    NcclGroup calls(nccl());
    for (const CollectivePart& part : collective_.parts) {
      collective_.kind == Kind::kSend ? send(part.input, whole_bytes(part), other)
                                      : receive(part.output, whole_bytes(part), other);
    }
    calls.end();
  }

  void broadcast() {
    NcclGroup calls(nccl());
    for (const CollectivePart& part : collective_.parts) {
      if (part.elements == 0) continue;
      void* output = part.output != nullptr ? part.output : const_cast<void*>(part.input);
      const void* input = collective_.peer == rank_ ? part.input : output;
      check_nccl(nccl().broadcast(input, output, static_cast<size_t>(whole_bytes(part)), ncclInt8,
                                  collective_.peer, to_.comm, to_.stream));
    }
    calls.end();
  }

  void exchange_blocks() {
    for (const CollectivePart& part : collective_.parts) {
      const auto [begin, bytes] = range(part, rank_);
      copy(at(part.output, begin), at(part.input, begin), bytes, to_.stream);
    }
    exchange([&](const CollectivePart& part, size_t, int peer) {
      const auto [begin, bytes] = range(part, peer);
      send(at(part.input, begin), bytes, peer);
      receive(at(part.output, begin), bytes, peer);
    });
  }

  // This rank's share: of an all-reduce, once it has been summed.
  const void* own_share(const CollectivePart& part) const {
    return collective_.kind == Kind::kAllReduce ? at(part.output, range(part, rank_).begin)
                                                : part.input;
  }

  // NCCL's all-gather where shares are equal: its rings cross from node to node once.
  void gather() {
    bool all_even = true;
    NcclGroup calls(nccl());
    for (const CollectivePart& part : collective_.parts) {
      if (is_added_by_nccl(part) || part.elements == 0) continue;
      all_even = all_even && is_even(part);
      if (!is_even(part)) continue;
      check_nccl(nccl().all_gather(own_share(part), part.output,
                                   static_cast<size_t>(range(part, rank_).bytes), ncclInt8,
                                   to_.comm, to_.stream));
    }
    calls.end();
    if (!all_even) gather_uneven();
  }

  void gather_uneven() {
    for (const CollectivePart& part : collective_.parts) {
      if (is_added_by_nccl(part) || is_even(part)) continue;
      const auto [begin, bytes] = range(part, rank_);
      copy(at(part.output, begin), own_share(part), bytes, to_.stream);
    }
    exchange([&](const CollectivePart& part, size_t, int peer) {
      if (is_added_by_nccl(part) || is_even(part)) return;
      send(own_share(part), range(part, rank_).bytes, peer);
      const auto [begin, bytes] = range(part, peer);
      receive(at(part.output, begin), bytes, peer);
    });
  }

  bool is_added_by_nccl(const CollectivePart& part) const {
    if (sums_ == Sums::kCanonical || part.elements == 0) return false;
    return collective_.kind == Kind::kAllReduce ||
           (collective_.kind == Kind::kReduceScatter && is_even(part));
  }

  void reduce() {
    bool all_by_nccl = true;
    NcclGroup calls(nccl());
    for (const CollectivePart& part : collective_.parts) {
      all_by_nccl = all_by_nccl && is_added_by_nccl(part);
      if (is_added_by_nccl(part)) add_by_nccl(part);
    }
    calls.end();
    if (all_by_nccl) return;
    exchange([&](const CollectivePart& part, size_t i, int peer) {
      if (is_added_by_nccl(part)) return;
      const auto [begin, bytes] = range(part, peer);
      send(at(part.input, begin), bytes, peer);
      receive(at(collective_.scratch, scratch_offset(collective_, i, size_, rank_, peer)),
              range(part, rank_).bytes, peer);
    });
    for (size_t i = 0; i < collective_.parts.size(); ++i) {
      if (!is_added_by_nccl(collective_.parts[i])) add_terms(i);
    }
    if (collective_.kind == Kind::kAllReduce) gather();
  }

  void add_by_nccl(const CollectivePart& part) {
    const ncclDataType_t type = type_of(collective_.dtype);
    if (collective_.kind == Kind::kAllReduce) {
      check_nccl(nccl().all_reduce(part.input, part.output, static_cast<size_t>(part.elements),
                                   type, ncclSum, to_.comm, to_.stream));
    } else {
      check_nccl(nccl().reduce_scatter(part.input, part.output, static_cast<size_t>(part.share),
                                       type, ncclSum, to_.comm, to_.stream));
    }
  }

  void add_terms(size_t i) {
    const CollectivePart& part = collective_.parts[i];
    const auto [begin, bytes] = range(part, rank_);
    const int first = rank_ == 0 ? 1 : 0;
    const SumTerms terms{
        .own = at(part.input, begin),
        .others = at(collective_.scratch, scratch_offset(collective_, i, size_, rank_, first)),
        .distance = scratch_slot_bytes(collective_, part, size_),
        .rank = rank_,
        .size = size_,
        .pairs = pairs_};
    void* result = at(part.output, collective_.kind == Kind::kAllReduce ? begin : 0);
    cuda::check(enqueue_tree_sum(collective_.dtype, terms, result,
                                 bytes / size_of(collective_.dtype), to_.stream),
                "the sum of the ranks' terms");
  }

  const NcclPost& to_;
  const Collective& collective_;
  const int rank_, size_;
  const TreePairs pairs_;
  const Sums sums_;
};

}  // namespace

void post_calls(const NcclPost& to, const Collective& collective, const PlaceInGroup& place,
                Sums sums) {
  Calls(to, collective, place, sums).post();
}

void post_copies(const Collective& collective, cudaStream_t stream) {
  for (const CollectivePart& part : collective.parts) {
    if (part.output == nullptr) continue;
    const int64_t elements =
        collective.kind == Kind::kBroadcast ? part.elements : share_elements(collective, part, 1);
    copy(part.output, part.input, std::min(elements, part.elements) * size_of(collective.dtype),
         stream);
  }
}

}  // namespace skein
