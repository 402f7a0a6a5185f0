// A matrix product against a known answer, right to the bit, and its rate.
//
// Formula  y = x w^T of whole numbers from -255 to 255 with 256 terms a sum: every product and
//          every partial sum is below 2^24, so any order of fp32 sums gives the exact answer, on
//          any kind of device. The answer is computed in integers on the host
// Shapes   x, w [size, 256]; y [size, size], f32
// Cost     runs until `seconds` are over, at least twice; the answer takes 256 size^2 integer
//          multiplications
#pragma once

#include "skein/health/check.h"
#include "skein/runtime/device.h"

namespace skein {

CheckResult check_product(Device& device, DType dtype, int64_t size, double seconds);

}  // namespace skein
