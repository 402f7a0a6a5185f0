// Weights in the order in which products read them (ops/packed_linear).
#pragma once

#include <cstddef>
#include <functional>
#include <span>

#include "skein/checkpoint/format/boxes.h"
#include "skein/model/decoder.h"
#include "skein/runtime/executor.h"

namespace skein {

// Fills the packed form of a weight, some rows at a time; nothing where the programs have none.
// read(box, dtype, target) gives the elements of a box of it, converted. Memory: a piece of some
// MB beside the arenas.
void fill_packed_weight(Executor& executor, const ParameterSpec& spec,
                        const std::function<void(const Box&, DType, std::span<std::byte>)>& read);

}  // namespace skein
