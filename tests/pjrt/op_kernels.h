// StableHLO rules as kernels: each call is compiled alone by a PJRT plugin and runs on its arrays,
// so that the tests of ops try the rules as they try kernels.
#pragma once

#include <string>

#include "skein/ir/kernel.h"
#include "skein/runtime/pjrt/pjrt_client.h"

namespace skein::pjrt_test {

// `client` must outlive the kernels.
KernelTable op_kernels(const PjrtClient& client);
// The one of op_kernels().
const PjrtClient& client_under_test();

}  // namespace skein::pjrt_test
