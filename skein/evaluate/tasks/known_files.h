// The files of Python whose functions are built in, recognized by their contents: folders of the
// same name hold other functions under the same names, and a function's meaning has changed between
// versions of the harness.
//
// A file that is beside the YAML file is one of them if its bytes are those of 0.4.13. If there is
// no such file, the folder's and the file's names decide.
//
// Errors   Error of a file that cannot be read, or is larger than 4 MiB
// Source   lm-evaluation-harness 0.4.13, tasks/*/*.py (checksums: xxh3-128)
#pragma once

#include <string>
#include <string_view>

#include "skein/jinja/values/value.h"

namespace skein {

// Of a function's field (tasks/task_config.h).
struct KnownFile {
  std::string_view folder;  // of the harness: "winogrande"; empty: the file is none of them
  bool is_changed = false;  // it has the names of one of them, and other contents
};
KnownFile known_file(const jinja::Value& field);
// "doc_to_text" of `!function preprocess_winogrande.doc_to_text`.
std::string called_name(const jinja::Value& field);
// The name of the folder that holds the YAML file; empty if it is not known.
std::string folder_of(const jinja::Value& field);

}  // namespace skein
