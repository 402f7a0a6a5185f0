// Turns inputs into several corpora, on any number of machines that share nothing but the folders
// they read and write: `skein data ingest --shards N`.
//
// Output   OUT/part-00000-of-00016.arrow, …, each with its .sources; one after another they are
//          the documents of one ingestion of all inputs, in the same order. A shard gets whole
//          files that follow each other, about as many bytes as any other; which ones follows from
//          the list of inputs and their sizes alone.
//          Each says which list of inputs it is of: machines that see others are refused.
// Empty    a shard of whose files nothing is left is a corpus without documents; where all are made
//          here and all are empty, they are an error
// Restart  a shard that is there, made of the same inputs with the same options, is not made again
// Errors   as ingest(); Error{kUsage} for more shards than files, and for a hold-out, which goes by
//          the index of a document among all, which a machine that reads a part of them cannot know
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "skein/prepare/ingest.h"

namespace skein {

struct ShardOptions {
  int64_t num_shards = 1;
  // This machine makes the shards whose number is `machine` modulo `num_machines`.
  int64_t machine = 0, num_machines = 1;
};

// The corpus of a shard: OUT/part-00000-of-00016.arrow.
fs::path shard_path(const fs::path& out, int64_t shard, int64_t num_shards);

// The shards that a folder, or a name in a store, holds already are of this division, and, if
// `list` is given, of this list of inputs (data/corpus/shard_set.h): Error{kUsage}.
void check_shard_set(const Place& out, int64_t num_shards, const std::string& list = "");

// Of `num_files` files of these sizes, the index of the first one of each shard.
std::vector<size_t> first_files(const std::vector<InputFile>& files, int64_t num_shards);

// `on_shard` is called with the report of each shard when it is done.
void ingest_shards(const std::vector<fs::path>& inputs, const Place& out,
                   const IngestOptions& options, const ShardOptions& shards,
                   const std::function<void(const fs::path& shard, const IngestReport&)>& on_shard,
                   const std::function<void(const PiecesProgress&)>& on_progress = {});

}  // namespace skein
