// Small values that the ranks of a run exchange between steps, to decide alike.
//
// Deadline  values_of_all, text_of_rank and wait_for_all wait for up to an hour, since rank 0 may
//           be reading a large checkpoint, or other ranks their parts of it. The death of a rank is
//           noticed at once all the same
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "skein/comm/communicator.h"

namespace skein {

// The sum of the values of all ranks.
double sum_over_ranks(Communicator& world, double value);
void sum_over_ranks(Communicator& world, std::vector<double>& values);

// The values of all ranks, in order of ranks; every rank passes the same number of them.
std::vector<int64_t> values_of_all(Communicator& world, std::span<const int64_t> mine);

// The text of that rank, on every rank.
std::string text_of_rank(Communicator& world, int rank, const std::string& text);
std::string text_of_rank_0(Communicator& world, const std::string& text);

// The texts of all ranks, in order of ranks.
std::vector<std::string> texts_of_all(Communicator& world, const std::string& text);

void wait_for_all(Communicator& world, std::string_view why);

}  // namespace skein
