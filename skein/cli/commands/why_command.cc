// skein why RUN --step N [--set section.key=value]... [--top K] [--exact] [--save] [--json]
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <memory>

#include "skein/base/text/json_text.h"
#include "skein/base/text/units.h"
#include "skein/base/text/visible_text.h"
#include "skein/cli/commands/commands.h"
#include "skein/cli/shared/print.h"
#include "skein/config/config.h"
#include "skein/train/explain/explain_step.h"
#include "skein/train/explain/verdict.h"

namespace skein {
namespace {

constexpr int64_t kShownCharacters = 60;   // on the terminal
constexpr int64_t kToldCharacters = 1000;  // in JSON

// Numbers that JSON lacks are null.
OrderedJson finite_json(double value) {
  return std::isfinite(value) ? OrderedJson(value) : OrderedJson(nullptr);
}

OrderedJson answer_json(const StepAnswer& answer, size_t top) {
  OrderedJson documents = OrderedJson::array();
  for (size_t i = 0; i < std::min(top, answer.documents.size()); ++i) {
    const DocumentEffect& document = answer.documents[i];
    documents.push_back({{"rank", i + 1},
                         {"corpus", answer.corpora[document.place.corpus]},
                         {"document", document.place.document},
                         {"source", document.source},
                         {"record", document.record},
                         {"row", document.place.row},
                         {"lane", document.place.row},
                         {"begin", document.place.begin},
                         {"end", document.place.end},
                         {"first_token", document.place.first_token},
                         {"tokens", document.place.end - document.place.begin},
                         {"labels", document.num_labels},
                         {"loss", finite_json(document.loss)},
                         {"loss_rank", document.loss_rank},
                         {"shuffled_loss", finite_json(document.shuffled_loss)},
                         {"bits_per_byte", finite_json(document.bits_per_byte)},
                         {"loss_share", finite_json(document.loss_share)},
                         {"grad_norm", finite_json(document.grad_norm)},
                         {"grad_norm_rank", document.grad_rank},
                         {"deviation", finite_json(document.deviation)},
                         {"text", visible_text(document.text, kToldCharacters)}});
  }
  return {{"step", answer.step},
          {"batch", answer.batch},
          {"skipped", answer.is_skipped},
          {"weights_step", answer.weights_step},
          {"weights_from", answer.weights_from},
          {"exact", answer.is_exact},
          {"loss", finite_json(answer.loss)},
          {"verdict", verdict_of(answer)},
          {"num_documents", answer.documents.size()},
          {"documents", std::move(documents)}};
}

void print_answer(const StepAnswer& answer, size_t top) {
  print_line(stdout, "batch {} of {}, {} step {}: {}, loss {:.4f} by the weights of step {}, {}{}",
             answer.batch, fmt::join(answer.corpora, ", "),
             answer.is_skipped ? "skipped before" : "of", answer.step,
             counted(static_cast<int64_t>(answer.documents.size()), "document"), answer.loss,
             answer.weights_step, answer.is_replayed ? "trained again from " : "",
             answer.weights_from.empty() ? "the initial ones" : answer.weights_from);
  if (!answer.is_exact) {
    const int64_t between = answer.step - 1 - answer.weights_step;
    fmt::print(
        "step {} began with those of step {}, which has no checkpoint: --exact trains the {} "
        "in between again\n",
        answer.step, answer.step - 1, between == 1 ? "step" : fmt::format("{} steps", between));
  }
  if (const std::string verdict = verdict_of(answer); !verdict.empty()) {
    fmt::print("{}\n", verdict);
  }
  fmt::print(
      "\nby deviation: how far a document stands out from the others of the step by its loss, bits "
      "a byte, loss beside that of shuffled tokens, or gradient norm\n"
      "{:>4}  {:>9}  {:>5}  {:>11}  {:>8}  {:>9}  {:>9}  {:>6}  {:>9}  text\n",
      "rank", "document", "lane", "tokens", "loss", "bits/byte", "grad norm", "share", "deviation");
  for (size_t i = 0; i < std::min(top, answer.documents.size()); ++i) {
    const DocumentEffect& document = answer.documents[i];
    fmt::print(
        "{:>4}  {:>9}  {:>5}  {:>11}  {:>8.3f}  {:>9.3f}  {:>9.3g}  {:>5.1f}%  {:>9.1f}  {}\n",
        i + 1,
        answer.corpora.size() == 1
            ? fmt::format("{}", document.place.document)
            : fmt::format("{}:{}", document.place.corpus + 1, document.place.document),
        document.place.row, fmt::format("{}-{}", document.place.begin, document.place.end - 1),
        document.loss, document.bits_per_byte, document.grad_norm, 100 * document.loss_share,
        document.deviation, visible_text(document.text, kShownCharacters));
    if (!document.source.empty()) {
      print_line(stdout, "{:>16}from {}:{}", "", document.source, document.record);
    }
  }
  if (top < answer.documents.size()) {
    fmt::print("      … and {} more: --top N shows them\n", answer.documents.size() - top);
  }
}

struct WhyOptions {
  ConfigOptions config;
  StepQuestion question;
  int64_t top = 10;
  bool json = false, save = false;
};

// Where `skein report --html` finds it.
void save_answer(const fs::path& run_dir, const StepAnswer& answer, const OrderedJson& json) {
  const fs::path folder = run_dir / "why";
  make_folders(folder);
  const fs::path file = folder / (answer.is_skipped ? fmt::format("batch-{:08}.json", answer.batch)
                                                    : fmt::format("step-{:08}.json", answer.step));
  write_file_atomic(file, json_text(json, 2) + "\n");
  print_line(stderr, "kept for skein report --html: {}", file.string());
}

int why_command(const WhyOptions& options) {
  if ((options.question.step == 0) == (options.question.batch == 0)) {
    fail(ErrorCode::kUsage, "expected either --step or --batch, the step or batch to explain");
  }
  const Config config = load_config_of_run(options.config);
  const StepAnswer answer = explain_step(config, options.question);
  const auto top = static_cast<size_t>(options.top);
  if (options.save) save_answer(config.run.dir, answer, answer_json(answer, top));
  if (options.json) {
    print_json(answer_json(answer, top));
  } else {
    print_answer(answer, top);
  }
  return kExitDone;
}

}  // namespace

void add_why_command(CLI::App& app, CommandContext& context) {
  const auto options = std::make_shared<WhyOptions>();
  CLI::App* command = app.add_subcommand(
      "why", "Rank the documents of a step by their own loss and gradient: which is the poison?");
  options->config.add_to(*command, context)
      ->description("the folder of a run, or its configuration");
  command->add_option("--step", options->question.step, "a step of the run; the first is 1")
      ->check(whole_number_from(1));
  command
      ->add_option("--batch", options->question.batch,
                   "in place of --step: a batch by its number, even if the run skipped it")
      ->check(whole_number_from(1));
  command->add_option("--top", options->top, "documents to show, 10")->check(whole_number_from(1));
  command->add_flag(
      "--exact", options->question.exact,
      "train the steps since the checkpoint again, for the weights of that very step");
  command->add_flag("--save", options->save,
                    "keep the answer in RUN/why, for the page of skein report --html");
  command->add_flag("--json", options->json, "print one JSON document");
  command->callback([&context, options] {
    context.computes = true;
    context.run = [options] { return why_command(*options); };
  });
}

}  // namespace skein
