// The corpora that a command makes, each with its sources beside it: files, or objects of a bucket.
//
// In a bucket  an object is made in a folder of this machine first, since a corpus begins with what
//              is known behind its last document. It is sent when all of the command's outputs are
//              made: the sources, then the corpus; what is here is removed when all are sent. A
//              command that ends before finds what was made, and sends it.
// Errors       Error{kUsage} beginning with `option`, such as --out, or with the input;
//              Error{kIo | kNoSpace | kNotFound} naming the file or the object
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "skein/base/files/file.h"
#include "skein/objects/place.h"
#include "skein/prepare/read/inputs/inputs.h"

namespace skein {

struct Output {
  Place named;    // by the caller
  fs::path made;  // the same file, or the one that is sent there
  bool is_sent() const { return named.is_object(); }
};

// `work`: where outputs in buckets are made; empty: in TMPDIR.
Output output_of(const Place& named, const fs::path& work);

// It must be possible to write, and must not replace anything by accident. Makes the folder in
// which it is made.
void check_output(const char* option, const Output& output, bool overwrite);

// Whether the corpus is there, made of this (CorpusSources): it is the last to be written. A corpus
// in a bucket that is older than its sources was not written with them.
bool is_made_from(const Place& corpus, const std::string& made_from);

// Whether all are made here, of this, and wait only for being sent.
bool wait_to_be_sent(const std::vector<Output>& outputs, const std::string& made_from);

using OnSent = std::function<void(int64_t num_bytes, int64_t of)>;  // some times a second

// Sends those of buckets, in this order, and then removes them here.
void send(const std::vector<Output>& outputs, const OnSent& on_sent = {});

// Removes here what is in its bucket.
void remove_sent(const std::vector<Output>& outputs);

// Corpora that were found in a folder are not shards of different divisions (shard_set.h).
void check_shards_of_inputs(const std::vector<InputFile>& inputs);

// No input is one of the outputs.
void check_not_outputs(const std::vector<InputFile>& inputs, const std::vector<Place>& outputs);

}  // namespace skein
