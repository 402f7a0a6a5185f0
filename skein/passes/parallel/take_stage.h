// One pipeline stage's part of a differentiated graph: the nodes of its chunks, the inputs that
// they need, and sends and receives where a value crosses from one chunk to the next.
//
// A chunk is a run of scopes of the model: the embedding and the first layers, further layers, or
// the last ones and the head. Its nodes keep their phases; forward and backward of each chunk
// become programs of their own (passes/memory/plan_memory.h), which a schedule puts in order
// (schedule/pipeline_tasks.h). A parameter that two chunks use (tied embeddings) is on both stages.
//
// Errors  Error{kInternal} where a value crosses to a chunk that is not a neighbour
#pragma once

#include <functional>
#include <string>

#include "skein/ir/graph.h"
#include "skein/schedule/pipeline_tasks.h"

namespace skein {

using ChunkOfScope = std::function<int(const Scope& scope)>;

// Assigns layers to chunks as schedule/pipeline_tasks.h deals them; what comes before the layers
// belongs to the first chunk, what comes after them to the last.
ChunkOfScope chunks_by_layers(int64_t num_layers, int64_t num_chunks);

Graph take_stage(const Graph& graph, const PipelineShape& shape, const ChunkOfScope& chunk_of,
                 int64_t stage);

}  // namespace skein
