// Predicts the time of a collective on described hardware, from its bytes and its ranks' nodes.
//
// Letters   n ranks on N nodes, k of them on each (on the node that has fewest); x bytes in whole;
//           links within a node: ai seconds, bi bytes per second; between nodes ae, be for each
//           device, so that k ranks together use k links.
// Formula   all-gather      the less of
//             ring            (n - N) ai + (N - 1) ae + (n - 1)/n x / min(bi, k be)
//             by levels       ceil(log2 k) ai + ceil(log2 N) ae
//                             + (N - 1)/n x / be + (k - 1)/k x / bi
//           all-to-all      max(ai, ae) + max((k - 1)/n x / bi, (n - k)/n x / be);
//                           all blocks at once
//           reduce-scatter  as all-to-all: since sums have a fixed order, the terms are sent to
//                           their owner, which adds them; as many bytes as a ring
//           all-reduce      a reduce-scatter and an all-gather
//           broadcast       ceil(log2 k) (ai + x/bi) + ceil(log2 N) (ae + x/be)
//           barrier         a broadcast with x = 0
//           send            a + x/b of the slowest link between neighbours of the group
//           The all-gather by levels needs k ranks on every node. Trees within a node are over
//           ceil(n/N) ranks. Terms of a link that no two ranks use are dropped. One rank: 0
//           seconds.
// Errors    Error{kUsage} where a group needs a link that the hardware does not have
// Source    Thakur, Rabenseifner, Gropp 2005 (alpha-beta costs); Patarasuk and Yuan 2009 (rings)
#pragma once

#include <cstdint>

#include "skein/comm/communicator.h"
#include "skein/schedule/hardware.h"

namespace skein {

// How the ranks of a group are distributed over nodes.
struct GroupPlace {
  int64_t size = 1;            // n
  int64_t num_nodes = 1;       // N
  int64_t ranks_per_node = 1;  // k

  bool operator==(const GroupPlace&) const = default;
};

// Places groups of `size` ranks that are `stride` apart, in a world of `world` ranks that fill one
// node after another. In a mesh (row-major pp, dp, cp, tp) the stride of an axis is the product of
// the sizes after it. Returns the worst placed of these groups: on most nodes, then with fewest
// ranks on a node. Cost: O(world).
// Errors  Error{kInternal} unless size * stride divides world
GroupPlace place_group(int64_t size, int64_t stride, int64_t world, const Hardware& hardware);

double collective_seconds(CollectiveKind kind, double bytes_whole, const GroupPlace& group,
                          const Hardware& hardware);

}  // namespace skein
