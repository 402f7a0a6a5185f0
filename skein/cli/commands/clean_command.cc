// skein data clean --out FILE.arrow INPUT...
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <memory>

#include "skein/base/error.h"
#include "skein/base/files/file.h"
#include "skein/cli/commands/commands.h"
#include "skein/cli/inputs/ingest_arguments.h"
#include "skein/cli/inputs/shard_option.h"
#include "skein/cli/shared/print.h"
#include "skein/data/corpus/shard_set.h"
#include "skein/objects/object_writer.h"
#include "skein/objects/store.h"
#include "skein/prepare/clean/clean.h"
#include "skein/prepare/ingest_shards.h"

namespace skein {
namespace {

struct CleanCommand {
  IngestArguments ingest;
  std::vector<std::string> settings, removes, languages;
  std::string language_model;
  Place page;
  size_t num_examples = 1;
  bool json = false;
  CleanOptions clean;
};

void print_rules(const CleanRules& rules) {
  const RuleInfo* last = nullptr;
  for (const RuleInfo& rule : cleaning_rules()) {
    if (last == nullptr || rule.filter != last->filter) fmt::print("{}\n", name_of(rule.filter));
    last = &rule;
    fmt::print("  {:<30} {:>7}  {}\n", rule.name, rules.value_text(rule.rule), rule.meaning);
  }
}

// The options that are not of all commands that make corpora.
std::vector<std::string> command_words(const CleanCommand& options) {
  std::vector<std::string> words = {"data", "clean"};
  const auto add = [&](const char* name, const std::vector<std::string>& values) {
    for (const std::string& value : values) words.insert(words.end(), {name, value});
  };
  add("--set", options.settings);
  if (!options.language_model.empty()) {
    add("--language-model", {place_text(options.language_model)});
    add("--language", options.clean.languages);
  }
  if (options.clean.repairs) words.emplace_back("--repair");
  add("--remove", options.removes);
  if (options.page.is_named()) add("--report", {place_text(options.page.text())});
  add("--examples", {std::to_string(options.num_examples)});
  if (options.json) words.emplace_back("--json");
  return words;
}

// Before hours of work.
void check_page(const CleanCommand& options) {
  if (!options.page.is_named() || options.ingest.slurm) return;  // each task asks where it runs
  if (options.page.is_object()) return require_store(options.page.text(), "--report");
  const fs::path& page = options.page.path();
  const fs::path folder = page.has_parent_path() ? page.parent_path() : fs::path(".");
  std::error_code error;
  if (fs::is_directory(page, error) || !page.has_filename()) {
    fail(ErrorCode::kUsage, "--report {}: is a folder: expected the name of a file", page.string());
  }
  if (!fs::is_directory(folder, error) || ::access(folder.c_str(), W_OK) != 0) {
    fail(ErrorCode::kUsage,
         "--report {}: {} is no folder that can be written to: expected one, since the report is "
         "written there at the end",
         page.string(), folder.string());
  }
}

// Where several processes make shards, each shard has a page: FILE-00003-of-00016.html.
fs::path page_of(const CleanCommand& options, const fs::path& out) {
  const fs::path& page = options.page.path();
  const auto shard = options.ingest.shard_index.empty() ? std::nullopt : shard_name(out);
  if (!shard) return page;
  return fs::path(page).replace_filename(fmt::format("{}-{:05}-of-{:05}{}", page.stem().string(),
                                                     shard->index, shard->count,
                                                     page.extension().string()));
}

// All that this process writes.
std::vector<Place> pages(const CleanCommand& options) {
  if (!options.page.is_named() || options.ingest.slurm) return {};
  const std::string& index = options.ingest.shard_index;
  if (index.empty() || !options.ingest.num_shards) return {options.page};
  const WorkShare share = parse_shard_index(index);
  std::vector<Place> pages;
  for (int64_t i = share.index; i < *options.ingest.num_shards; i += share.count) {
    pages.push_back(
        page_of(options, shard_path(options.ingest.out.path(), i, *options.ingest.num_shards)));
  }
  return pages;
}

bool is_there(const Place& page) {
  std::error_code error;
  return page.is_object() ? has_object(*page.object()) : fs::exists(page.path(), error);
}

// What was judged, and of which corpora nothing was, since they were there.
struct Cleaned {
  CleanReport total;
  int64_t num_made = 0;
  int64_t num_finished_before = 0;
  std::vector<fs::path> pages_before;  // of these
};

// The page is written before the corpus is: one that cannot be leaves it to the next try.
void take(const CleanCommand& options, const fs::path& out, const IngestReport& report,
          Cleaned& cleaned) {
  CleanReport of_corpus;
  for (const Json& counters : report.counters) {
    of_corpus.add(CleanReport::from_counters(counters));
  }
  cleaned.total.add(of_corpus);
  ++cleaned.num_made;
  if (!options.page.is_named()) return;
  const fs::path page = page_of(options, out);
  const bool is_of_all = page == options.page.path();
  write_file_or_object(page, to_html(is_of_all ? cleaned.total : of_corpus, options.clean.rules));
}

void print_report(const CleanCommand& options, const Cleaned& cleaned) {
  if (cleaned.num_finished_before > 0) {
    fmt::print(
        stderr, "no report of {}: nothing was read; --overwrite makes it again\n",
        cleaned.num_finished_before == 1
            ? "a corpus that was finished before"
            : fmt::format("{} corpora that were finished before", cleaned.num_finished_before));
  }
  if (cleaned.num_made == 0) return;
  if (options.json) {
    print_json(to_json(cleaned.total, options.clean.rules));
  } else {
    print_text(stdout, to_text(cleaned.total, options.clean.rules, options.num_examples));
  }
}

int run(CleanCommand& options) {
  CleanOptions& clean = options.clean;
  for (const std::string& setting : options.settings) clean.rules.set(setting);
  clean.language_model = options.language_model;
  if (!options.languages.empty()) {
    clean.languages = options.languages;
    if (options.language_model.empty()) {
      fail(ErrorCode::kUsage,
           "--language {}: nothing tells languages without --language-model FILE, such as "
           "lid.176.bin from https://fasttext.cc",
           options.languages.front());
    }
  }
  const auto removes = [&](const char* what) {
    return std::find(options.removes.begin(), options.removes.end(), what) != options.removes.end();
  };
  clean.removes = {removes("email"), removes("ip"), removes("phone")};
  check_page(options);
  options.ingest.ingest.also_written = pages(options);
  for (const Place& page : options.ingest.ingest.also_written) {
    check_replaces_its_own("--report", page.path(), "<!doctype html>");
  }
  options.ingest.ingest.step = cleaning_step(clean);
  if (clean.language_model.empty() && !options.ingest.slurm) {
    fmt::print(stderr, "languages are not looked at: --language-model names no model\n");
  }
  Cleaned cleaned;
  options.ingest.ingest.on_read = [&](const fs::path& out, const IngestReport& report) {
    take(options, out, report, cleaned);
  };
  const auto note = [&](const fs::path& out, const IngestReport& report) {
    if (!report.was_finished && !report.was_made) return;
    ++cleaned.num_finished_before;
    if (options.page.is_named()) cleaned.pages_before.push_back(page_of(options, out));
  };
  try {
    run_ingest(options.ingest, command_words(options), note);
  } catch (const Error&) {
    print_report(options, cleaned);  // it says what dropped everything, if that is the error
    throw;
  }
  print_report(options, cleaned);
  for (const fs::path& page : cleaned.pages_before) {
    if (is_there(page)) continue;
    fail(ErrorCode::kUsage,
         "--report {}: is not written, since the corpus was finished before and nothing was read: "
         "--overwrite makes both again",
         page.string());
  }
  return kExitDone;
}

}  // namespace

void add_clean_command(CLI::App& group, CommandContext& context) {
  const auto options = std::make_shared<CleanCommand>();
  CLI::App* command = group.add_subcommand(
      "clean", "Drop documents and lines of low quality, as FineWeb's recipe does");
  add_ingest_arguments(*command, options->ingest);
  command
      ->add_option("--set", options->settings,
                   "RULE=NUMBER, RULE=off or FILTER=off, such as gopher_short_doc=20; repeatable")
      ->allow_extra_args(false);
  as_path_of_a_disk(command->add_option("--language-model", options->language_model,
                                        "a model of fastText, such as lid.176.bin"));
  command->add_option("--language", options->languages, "keep documents in it, en; repeatable")
      ->allow_extra_args(false);
  command->add_flag("--repair", options->clean.repairs,
                    "repair text that was decoded wrongly, line ends and controls; NFC");
  command->add_option("--remove", options->removes, "replace email, ip or phone; repeatable")
      ->allow_extra_args(false)
      ->check(CLI::IsMember({"email", "ip", "phone"}).description(""));
  as_path(command->add_option("--report", options->page, "write the report as a page of HTML"));
  command->add_option("--examples", options->num_examples, "of each rule in the terminal, 1")
      ->check(whole_number_from(0, static_cast<int64_t>(CleanReport::kNumExamples)));
  command->add_flag("--json", options->json, "print one JSON document");
  command->add_flag_callback(
      "--list-rules",
      [options] {
        CleanRules rules;  // --set stands before this in the list of options, and so was read
        for (const std::string& setting : options->settings) rules.set(setting);
        print_rules(rules);
        throw CLI::Success();
      },
      "print all rules with their thresholds, as --set has them");
  command->callback([&context, options] { context.run = [options] { return run(*options); }; });
}

}  // namespace skein
