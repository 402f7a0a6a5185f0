#include "skein/cli/inputs/left_out.h"

#include <fmt/format.h>

#include <algorithm>

#include "skein/base/text/log.h"
#include "skein/base/text/units.h"
#include "skein/cli/shared/print.h"
#include "skein/objects/store.h"

namespace skein {

void print_left_out(const LeftOut& left_out) {
  if (left_out.num_files > 0) {
    fmt::print(stderr, "passed over {} that hold{} no text\n", counted(left_out.num_files, "file"),
               left_out.num_files == 1 ? "s" : "");
  }
  for (const std::string& warning : left_out.warnings) print_line(stderr, "  {}", warning);
  if (left_out.num_lines > 0) {
    fmt::print(stderr, "passed over {} not valid\n", counted(left_out.num_lines, "line"));
  }
  if (left_out.num_repaired > 0) {
    fmt::print(stderr, "not UTF-8: {}, repaired or left out\n",
               counted(left_out.num_repaired, "document"));
  }
  if (left_out.num_documents > 0) {
    const bool is_one = left_out.num_documents == 1;
    const std::string place =
        left_out.first_empty.empty()
            ? ""
            : fmt::format("{}{}", is_one ? ": " : "; the first empty one: ", left_out.first_empty);
    print_line(stderr, "left out {} {} document{}{}", left_out.num_documents, left_out.documents,
               is_one ? "" : "s", place);
  }
  if (!left_out.passed_over.empty()) fmt::print(stderr, "not read\n");
  constexpr size_t kShown = 20;
  for (size_t i = 0; i < std::min(kShown, left_out.passed_over.size()); ++i) {
    print_line(stderr, "  {}", left_out.passed_over[i]);
  }
  if (left_out.passed_over.size() > kShown) {
    fmt::print(stderr, "  … and {} more\n", left_out.passed_over.size() - kShown);
  }
  for (const std::string& note : left_out.notes) log::warn("{}", note);
  if (const int64_t repeated = repeated_requests(); repeated > 0) {
    fmt::print(stderr,
               "{} to the object store were repeated: it refused them, or the connection broke\n",
               counted(repeated, "request"));
  }
}

}  // namespace skein
