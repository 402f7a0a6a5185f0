// Sends values from one pipeline stage to another.
//
// Formula     receive on the other stage gives the x of send
// Shapes      any, packed; the type of a receive is that of the value that was sent
// Memory      `buffer` has room for `depth` copies of x, which sends use in turn. A message is in
//             flight until its copy is used again; that send then waits for it. So a stage computes
//             on while its neighbour is busy, and two neighbours that send first do not deadlock;
//             schedule/pipeline_tasks.h says which depth a schedule needs
// Order       sends and receives over one group match in order. Forward and backward traffic have
//             a group each, since the two interleave differently on the two stages
// Derivative  none: the passes cut a graph that is already differentiated
// Cost        the bytes of x over the wire
// Errors      kPeerLost
// Source      Huang et al., arXiv:1811.06965; Narayanan et al., arXiv:2104.04473
#pragma once

#include <string>
#include <string_view>

#include "skein/ir/graph.h"

namespace skein {

// Groups of the pipeline axis, by direction.
inline constexpr std::string_view kForwardGroup = "pp";
inline constexpr std::string_view kBackwardGroup = "pp.backward";

extern const OpDef kSend;     // (x, buffer) {axis, peer, channel, depth} -> buffer'
extern const OpDef kReceive;  // () {axis, peer, dtype, shape, placements} -> x

// The buffer that send needs.
TensorType send_buffer_type(TensorType x, int64_t depth);

// `peer`: the stage. `channel` names the buffer, which only one sender uses.
ValueId send(Graph& graph, ValueId x, ValueId buffer, std::string_view group, int64_t peer,
             int64_t channel, int64_t depth = 1);
ValueId receive(Graph& graph, const TensorType& type, std::string_view group, int64_t peer,
                const std::string& name);

}  // namespace skein
