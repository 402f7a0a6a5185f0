// skein data clean --out FILE.arrow INPUT...
#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "skein/base/error.h"
#include "skein/base/file.h"
#include "skein/cli/commands.h"
#include "skein/cli/ingest_arguments.h"
#include "skein/objects/object_store.h"
#include "skein/objects/object_writer.h"
#include "skein/prepare/clean/clean.h"

namespace skein {
namespace {

struct CleanCommand {
  IngestArguments ingest;
  std::vector<std::string> settings, removes, languages;
  std::string language_model, page;
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
    add("--language-model", {options.language_model});
    add("--language", options.clean.languages);
  }
  if (options.clean.repairs) words.emplace_back("--repair");
  add("--remove", options.removes);
  return words;
}

void check_page(const CleanCommand& options) {
  if (is_object_url(options.page)) require_store(options.page, "--report");
  if (!options.page.empty() && options.ingest.slurm) {
    fail(ErrorCode::kUsage,
         "--report {}: every task of a job array would write it; clean without it, or a shard at a "
         "time",
         options.page);
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
  options.ingest.ingest.step = cleaning_step(clean);
  if (clean.language_model.empty() && !options.ingest.slurm) {
    fmt::print(stderr, "languages are not looked at: --language-model names no model\n");
  }
  CleanReport total;
  int64_t num_made = 0, num_finished_before = 0;
  run_ingest(options.ingest, command_words(options), [&](const IngestReport& report) {
    ++(report.was_finished || report.was_made ? num_finished_before : num_made);
    for (const Json& counters : report.counters) total.add(CleanReport::from_counters(counters));
  });
  if (num_finished_before > 0) {
    fmt::print(stderr, "no report of {}: nothing was read; --overwrite makes it anew\n",
               num_finished_before == 1
                   ? "a corpus that was finished before"
                   : fmt::format("{} corpora that were finished before", num_finished_before));
  }
  if (num_made == 0) return kExitDone;
  if (!options.page.empty()) write_file_or_object(options.page, to_html(total, clean.rules));
  if (options.json) {
    print_json(to_json(total, clean.rules));
  } else {
    fmt::print("{}", to_text(total, clean.rules, options.num_examples));
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
  as_path(command->add_option("--language-model", options->language_model,
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
      [] {
        print_rules(CleanRules());
        throw CLI::Success();
      },
      "print all rules with their thresholds");
  command->callback([&context, options] { context.run = [options] { return run(*options); }; });
}

}  // namespace skein
