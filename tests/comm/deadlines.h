// How long ranks of a test wait for each other, and what is told from that as at once.
#pragma once

namespace skein::comm_test {

// A rank that is said to fail at once fails long before the deadline of its world, also on a
// machine that is ten times slower.
inline constexpr double kDeadlineS = 300, kAtOnceS = 60;

}  // namespace skein::comm_test
