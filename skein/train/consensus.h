// What the ranks of a run must decide alike: small values over the world, between steps.
//
// Deadline  text_of_rank_0 and wait_for_all wait for up to an hour: rank 0 may be reading a large
//           checkpoint, others their part of it. A rank that died is seen at once all the same
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "skein/comm/communicator.h"

namespace skein {

// The sum of everyone's value.
int32_t sum_over_ranks(Communicator& world, int32_t value);
double sum_over_ranks(Communicator& world, double value);

// Everyone's values, rank by rank: as many of each.
std::vector<int64_t> values_of_all(Communicator& world, std::span<const int64_t> mine);

// That rank's text, on every rank.
std::string text_of_rank(Communicator& world, int rank, const std::string& text);
std::string text_of_rank_0(Communicator& world, const std::string& text);

void wait_for_all(Communicator& world, std::string_view why);

}  // namespace skein
