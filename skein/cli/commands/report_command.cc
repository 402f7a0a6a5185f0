// skein report RUN_DIR... [--diff] [--sort METRIC] [--html FILE] [--json]
#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdlib>
#include <memory>

#include "skein/base/error.h"
#include "skein/base/text/log.h"
#include "skein/base/text/units.h"
#include "skein/cli/commands/commands.h"
#include "skein/cli/shared/print.h"
#include "skein/record/files/events.h"
#include "skein/record/report/compare/comparison.h"
#include "skein/record/report/html/page.h"
#include "skein/record/report/report.h"

namespace skein {
namespace {

struct ReportOptions {
  std::vector<std::string> run_dirs;
  std::string html, sort;
  bool diff = false, json = false;
};

int terminal_width() {
  struct winsize size {};
  if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) return size.ws_col;
  const char* columns = std::getenv("COLUMNS");
  const int width = columns == nullptr ? 0 : std::atoi(columns);
  return width > 0 ? width : 120;
}

// Before minutes of reading.
void check_page(const ReportOptions& options) {
  const fs::path page = options.html;
  const fs::path folder = page.has_parent_path() ? page.parent_path() : fs::path(".");
  std::error_code error;
  if (fs::is_directory(page, error) || !page.has_filename()) {
    fail(ErrorCode::kUsage, "--html {}: is a folder: expected the name of a file", options.html);
  }
  if (!fs::is_directory(folder, error)) {
    fail(ErrorCode::kUsage, "--html {}: {} is no folder: expected one that is there", options.html,
         folder.string());
  }
  check_replaces_its_own("--html", page, report_page_beginning());
}

void write_page(const ReportOptions& options, const ComparedRuns& runs,
                std::vector<OrderedJson> pages) {
  const std::string page = report_page(runs, std::move(pages), unix_time());
  write_file_atomic(options.html, page);
  print_line(stderr, "{}: {}, {}", options.html,
             counted(static_cast<int64_t>(runs.list.size()), "run"),
             format_bytes(static_cast<int64_t>(page.size())));
}

int compare(const ReportOptions& options) {
  const bool has_page = !options.html.empty();
  if (has_page) check_page(options);
  std::vector<OrderedJson> pages;
  ComparedRuns runs =
      read_compared_runs(options.run_dirs, [&](const ComparedRun& run, const RunReport& report) {
        if (has_page) pages.push_back(page_run(run, report));
      });
  if (!options.sort.empty()) {
    std::vector<OrderedJson> sorted;
    for (const size_t i : sort_runs(runs, options.sort)) {
      if (has_page) sorted.push_back(std::move(pages[i]));
    }
    pages = std::move(sorted);
  }
  for (const std::string& note : runs.notes) log::warn("{}", note);
  for (const ComparedRun& run : runs.list) {
    for (const std::string& note : run.notes) log::warn("{}", note);
  }
  if (has_page) write_page(options, runs, std::move(pages));
  if (options.json) {
    print_json(comparison_json(runs));
  } else if (options.diff) {
    print_text(stdout, comparison_text(runs, terminal_width()));
  }
  return kExitDone;
}

int report_runs(const ReportOptions& options) {
  const bool is_several = options.run_dirs.size() > 1;
  OrderedJson reports = OrderedJson::array();
  for (const std::string& run_dir : options.run_dirs) {
    const RunReport report = read_report(run_dir);
    if (options.json) {
      reports.push_back(report_json(report));
    } else {
      print_text(stdout, report_text(report) + (is_several ? "\n" : ""));
    }
  }
  if (options.json && is_several) {
    OrderedJson json = OrderedJson::object();
    json["runs"] = std::move(reports);
    print_json(json);
  } else if (options.json) {
    print_json(reports.front());
  }
  return kExitDone;
}

int report_command(const ReportOptions& options) {
  if (options.diff || !options.html.empty()) return compare(options);
  if (!options.sort.empty()) {
    fail(ErrorCode::kUsage, "--sort {}: sorts the runs of --diff or --html: add one of them",
         options.sort);
  }
  return report_runs(options);
}

}  // namespace

void add_report_command(CLI::App& app, CommandContext& context) {
  const auto options = std::make_shared<ReportOptions>();
  CLI::App* command =
      app.add_subcommand("report", "Tell what happened in a run, or compare several");
  as_path_of_a_disk(command->add_option("RUN_DIR", options->run_dirs, "the folders of the runs"))
      ->required();
  command->add_flag("--diff", options->diff,
                    "a table: the settings that differ and the figures, a column a run");
  command->add_option("--sort", options->sort,
                      "with --diff or --html: the runs by this figure, the best first, such as "
                      "validation.loss");
  as_path_of_a_disk(command->add_option(
      "--html", options->html, "write a page with curves and tables, which needs no network"));
  command->add_flag("--json", options->json, "print one JSON document");
  command->callback(
      [&context, options] { context.run = [options] { return report_command(*options); }; });
}

}  // namespace skein
