// How long a collective takes on described hardware, from its bytes and where its ranks sit.
//
// Letters   n ranks on N nodes, k of them on each (on the node that has fewest); x bytes whole;
//           links of a node: αi seconds, βi bytes per second; between nodes αe, βe of each device,
//           so that k ranks together drive k of them.
// Formula   all-gather      the less of
//             ring            (n - N) αi + (N - 1) αe + (n - 1)/n x / min(βi, k βe)
//             by levels       ⌈log2 k⌉ αi + ⌈log2 N⌉ αe + (N - 1)/n x / βe + (k - 1)/k x / βi
//           all-to-all      max(αi, αe) + max((k - 1)/n x / βi, (n - k)/n x / βe), all blocks at
//           once
//           reduce-scatter  as all-to-all: sums have a fixed order, so the terms travel to their
//                           owner, which adds them; as many bytes as a ring
//           all-reduce      a reduce-scatter and an all-gather
//           broadcast       ⌈log2 k⌉ (αi + x/βi) + ⌈log2 N⌉ (αe + x/βe); barrier: with x = 0
//           send            α + x/β of the group's slowest pair of neighbours
//           By levels only where every node has k. Trees within a node are over ⌈n/N⌉ ranks. Terms
//           of a link drop out where no two ranks use it. One rank: 0 seconds.
// Errors    Error{kUsage} where a group needs a link that the hardware does not have
// Source    Thakur, Rabenseifner, Gropp 2005 (α-β costs); Patarasuk and Yuan 2009 (rings)
#pragma once

#include <cstdint>

#include "skein/comm/communicator.h"
#include "skein/schedule/hardware.h"

namespace skein {

// Where the ranks of a group sit.
struct GroupPlace {
  int64_t size = 1;            // n
  int64_t num_nodes = 1;       // N
  int64_t ranks_per_node = 1;  // k

  bool operator==(const GroupPlace&) const = default;
};

// The groups of `size` ranks that lie `stride` apart, in a world of `world` ranks that fill nodes
// one after another. In a mesh (row-major pp, dp, cp, tp) the stride of an axis is the product of
// the sizes after it. Of all such groups, the one that is worst off: most nodes, then fewest ranks
// on a node. Cost: O(world).
// Errors  Error{kInternal} unless size * stride divides world
GroupPlace place_group(int64_t size, int64_t stride, int64_t world, const Hardware& hardware);

double collective_seconds(CollectiveKind kind, double bytes_whole, const GroupPlace& group,
                          const Hardware& hardware);

}  // namespace skein
