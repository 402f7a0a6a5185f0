// The matrix-product rate that a device reaches on large operands: the denominator of
// matmul_ceiling_share in the metrics.
#pragma once

#include "skein/runtime/device.h"

namespace skein {

// Formula  2 n^3 / t for an n x n x n product of `dtype`, the best of several runs; on the CPU the
//          better of oneDNN's product and our own, on a GPU that of `linear`, on standard normals
// Memory   three matrices on the device, freed on return; Error{kNoSpace} where they do not fit
// Cost     about 0.15 seconds, in which nothing else should run on the device
double measure_device_ceiling_flops(Device& device, DType dtype);

}  // namespace skein
