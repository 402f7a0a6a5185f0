// Checkpoints in a bucket: what lies under the URL of a folder of checkpoints.
//
//   step-00001000/manifest.json                          the checkpoint, if it is there: one
//                                                        request makes it appear, or replaces it
//   step-00001000/weights-00000-00000.<save>.safetensors what it names; <save> is of one save, so
//                                                        that a step that is saved again does not
//                                                        touch what is there
//   step-00001000/saving.<save>/…                        what ranks tell each other (object_save.h)
//
// Errors   as skein/objects/store.h
#pragma once

#include <string>
#include <vector>

#include "skein/checkpoint/find/checkpoint_folder.h"
#include "skein/objects/store.h"

namespace skein {

// For list_checkpoints(), clean_unfinished() and remove_checkpoint() of checkpoint_folder.h.
std::vector<CheckpointInfo> list_checkpoint_objects(const fs::path& dir);

// Removes of every step but `keep` what its manifest does not name; without a manifest, all of it.
void clean_unfinished_objects(const fs::path& dir, const FileOps& ops, const fs::path& keep);

// The manifest first: what is left of it then is no checkpoint.
void remove_checkpoint_objects(const fs::path& checkpoint, const FileOps& ops);

// Removes what lies under `checkpoint` and is not of its manifest, but for `keep`, a name.
void remove_unnamed(const fs::path& checkpoint, const std::vector<StoredObject>& objects,
                    const FileOps& ops, const std::string& keep = "");

}  // namespace skein
