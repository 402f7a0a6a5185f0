// Which files an ingestion reads: the named files, and those found in the named folders.
//
// Folders  walked in the order of their paths. Hidden entries, links to folders, unfinished files
//          (.partial), what operating systems and editors leave (foreign_files.h), Git LFS pointers
//          and entries that are not files are left out, each with a line in `passed_over`. So is
//          a README.md that begins as the card of a data set, beside tables.
// Saved    a folder that Hugging Face `datasets` saved (save_to_disk: state.json beside .arrow
//          files) gives the files that its state.json lists. A saved DatasetDict
//          (dataset_dict.json) is refused: its splits are not one corpus.
// Hub      the cache of the Hugging Face Hub (a folder with blobs/ and snapshots/) gives the files
//          of its snapshot, of several the one that refs/main names. A snapshot's README.md, the
//          card of its repository, is left out
// Once     a file that is there under several names, by links, is taken once
// Objects  s3://BUCKET/KEY is the object of that name, or all that lie under it (objects/).
// Errors   Error{kNotFound} for a missing file or folder, Error{kUsage} for a DatasetDict,
//          Error{kIo} naming the folder that cannot be read.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "skein/base/files/file.h"
#include "skein/objects/place.h"

namespace skein {

struct InputFile {
  fs::path path;
  bool named = false;      // by the caller
  int64_t num_bytes = 0;   // as it lies on the disk or in its bucket
  int64_t changed_ns = 0;  // since 1970, when it was changed; with its .sources, a mix of both
  bool in_folder = false;  // of those that the caller named
};

struct FoundInputs {
  std::vector<InputFile> files;
  std::vector<std::string> passed_over;  // what was left out and why, one line each
  std::vector<std::string> notes;        // what a person should know, one line each
};

// What tells files apart, whatever their names; nothing for an object, or where it cannot be asked.
using FileIdentity = std::pair<uint64_t, uint64_t>;  // a device, and a number on it
std::optional<FileIdentity> identity_of(const Place& place);

// `excluded` are files and folders to leave out if a folder holds them: the output.
FoundInputs find_inputs(const std::vector<fs::path>& inputs,
                        const std::vector<fs::path>& excluded = {});

}  // namespace skein
