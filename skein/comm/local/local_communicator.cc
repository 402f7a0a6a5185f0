#include "skein/comm/local/local_communicator.h"

#include "skein/base/error.h"
#include "skein/comm/shares.h"
#include "skein/comm/tree_sum.h"

namespace skein {

Communicator::Ticket LocalCommunicator::start(const Collective& collective) {
  check_collective(collective, 0, 1);
  for (const CollectivePart& part : collective.parts) {
    if (part.output == nullptr || part.output == part.input) continue;
    const int64_t elements =
        collective.kind == CollectiveKind::kBroadcast
            ? part.elements
            : share_of(collective, part, 1, 0).bytes / size_of(collective.dtype);
    tree_sum(collective.dtype, {&part.input, 1}, part.output, elements);
  }
  counts_[static_cast<size_t>(collective.kind)].calls += 1;
  return next_ticket_++;
}

std::unique_ptr<Communicator> LocalCommunicator::group(const std::vector<int>& members,
                                                       const std::string& name, int64_t) {
  if (members != std::vector<int>{0}) {
    fail(ErrorCode::kInternal, "group '{}' of '{}': its only rank is 0", name, name_);
  }
  return std::make_unique<LocalCommunicator>(name);
}

}  // namespace skein
