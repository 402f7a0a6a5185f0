#include "skein/base/error.h"
#include "skein/comm/communicator.h"

namespace skein {

std::unique_ptr<Communicator> make_nccl_world(Communicator&, const NcclOptions&) {
  fail(ErrorCode::kUnsupported, "this build has no CUDA, and so no NCCL");
}

}  // namespace skein
