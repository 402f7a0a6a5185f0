// What the commands that make corpora have in common where these lie in buckets: the folder in
// which they are made, and the progress of sending them.
#pragma once

#include <string>
#include <vector>

#include "skein/cli/shared/command.h"
#include "skein/prepare/outputs.h"

namespace skein {

void add_work_option(CLI::App& command, std::string& work);

// Says where `outputs` in buckets are made. Error{kUsage} for a folder if there are none.
void tell_work_folder(const std::vector<Place>& outputs, const std::string& work);

// A line on a terminal, drawn again and again.
void show_sending(int64_t num_bytes, int64_t of);

// "s3://b/c: was made before, and has now been sent", or that nothing was left to do.
void tell_made_before(const Place& output, bool was_sent);

}  // namespace skein
