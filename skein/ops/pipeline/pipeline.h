// What crosses from one pipeline stage to another.
//
// Formula     receive on the other stage gives the x of send
// Shapes      any, packed; `type` of a receive is that of the value that was sent
// Memory      `buffer` has room for `depth` times x, one below the other; sends take turns. A copy
//             is on its way until its turn comes again, and that send waits for it. So a stage goes
//             on computing while its neighbour is busy, and two neighbours that send first do not
//             wait for each other; schedule/pipeline.h says which depth a schedule needs
// Order       sends and receives over one group match in order; a group each for what goes forward
//             and backward, since the two interleave differently on the two sides
// Derivative  none: the passes cut a graph that is differentiated already
// Cost        the bytes of x over the wire
// Errors      kPeerLost
// Source      Huang et al., arXiv:1811.06965; Narayanan et al., arXiv:2104.04473
#pragma once

#include <string>
#include <string_view>

#include "skein/ir/graph.h"

namespace skein {

// Groups of the pipeline axis, by what goes over them.
inline constexpr std::string_view kForwardGroup = "pp";
inline constexpr std::string_view kBackwardGroup = "pp.backward";

extern const OpDef kSend;     // (x, buffer) {axis, peer, channel, depth} -> buffer'
extern const OpDef kReceive;  // () {axis, peer, dtype, shape, placements} -> x

// The buffer that send needs.
TensorType send_buffer_type(TensorType x, int64_t depth);

// `peer`: the stage. `channel` names the buffer; one sender each.
ValueId send(Graph& graph, ValueId x, ValueId buffer, std::string_view group, int64_t peer,
             int64_t channel, int64_t depth = 1);
ValueId receive(Graph& graph, const TensorType& type, std::string_view group, int64_t peer,
                const std::string& name);

}  // namespace skein
