#include "skein/cli/inputs/sent_outputs.h"

#include <fmt/format.h>

#include "skein/base/error.h"
#include "skein/base/text/log.h"
#include "skein/base/text/units.h"
#include "skein/cli/shared/print.h"

namespace skein {

void add_work_option(CLI::App& command, std::string& work) {
  as_path_of_a_disk(command.add_option("--work", work,
                                       "where an output s3://… is made before it is sent, TMPDIR"));
}

void tell_work_folder(const std::vector<Place>& outputs, const std::string& work) {
  bool is_sent = false;
  for (const Place& named : outputs) {
    const Output output = output_of(named, work);
    if (!output.is_sent()) continue;
    is_sent = true;
    print_line(stderr, "{}: made in {} first, which holds its text once", named.text(),
               output.made.string());
  }
  if (!is_sent && !work.empty()) {
    fail(ErrorCode::kUsage,
         "--work {}: is of outputs in a bucket, s3://…; others are made beside themselves", work);
  }
}

void show_sending(int64_t num_bytes, int64_t of) {
  if (!log::on_terminal()) return;
  fmt::print(stderr, "\r\033[Ksending  {} of {}", format_bytes(num_bytes), format_bytes(of));
}

void tell_made_before(const Place& output, bool was_sent) {
  print_line(stderr, "{}: {}, of the same inputs with the same options", output.text(),
             was_sent ? "was made before and has been sent now" : "was finished before");
}

}  // namespace skein
