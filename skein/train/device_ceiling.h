// The matrix-product rate that a device reaches on large operands: what `mfu` is a share of.
#pragma once

#include "skein/runtime/device.h"

namespace skein {

// Formula  2 n^3 / t of an n x n x n product of `dtype`, the best of several; on the CPU of the
//          better of oneDNN's and our own product
// Memory   three matrices of the device, given back; Error{kNoSpace} where they cannot be had
// Cost     about 0.15 seconds, in which nothing else should run on the device
double measure_device_ceiling_flops(Device& device, DType dtype);

}  // namespace skein
