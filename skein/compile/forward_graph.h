// The graph of a decoder that only runs forward, on one rank: the passes that its programs share.
#pragma once

#include "skein/ir/graph.h"
#include "skein/model/decoder.h"

namespace skein {

Graph forward_graph(const DecoderConfig& model, const DecoderOptions& options);

}  // namespace skein
