// skein score --model HF_DIR_OR_CHECKPOINT --tokens FILE.json
#include <cmath>
#include <cstdio>
#include <memory>

#include "skein/backends/backend.h"
#include "skein/cli/commands.h"
#include "skein/infer/inference.h"
#include "skein/ops/ops.h"

namespace skein {
namespace {

std::vector<std::vector<int32_t>> read_sequences(const std::string& path) {
  const Json json = read_json(path);
  const auto expected = [&](const std::string& found) {
    fail(ErrorCode::kInvalid, "{}: expected a list of lists of token ids, found {}", path, found);
  };
  if (!json.is_array()) expected(json.type_name());
  std::vector<std::vector<int32_t>> sequences;
  for (const Json& list : json) {
    if (!list.is_array()) expected(fmt::format("{} in it", list.type_name()));
    std::vector<int32_t>& sequence = sequences.emplace_back();
    for (const Json& id : list) {
      if (!id.is_number_integer() || id < 0 || id > INT32_MAX) {
        expected(fmt::format("{} in list {}", id.dump(), sequences.size() - 1));
      }
      sequence.push_back(id.get<int32_t>());
    }
  }
  return sequences;
}

}  // namespace

void add_score_command(CLI::App& app, CommandContext& context) {
  struct Options {
    std::string model;
    std::string tokens;
    int threads = 0;
  };
  const auto options = std::make_shared<Options>();
  CLI::App* command =
      app.add_subcommand("score", "Print the log-probability of each token given those before it");
  as_path(command->add_option("--model", options->model,
                              "a Hugging Face folder, a checkpoint or a run"))
      ->required();
  as_path(
      command->add_option("--tokens", options->tokens, "a JSON file: a list of lists of token ids"))
      ->required();
  command->add_option("--threads", options->threads, "0: all cores")->check(whole_number_from(0));
  command->callback([&context, options] {
    context.computes = true;
    context.run = [options] {
      const auto sequences = read_sequences(options->tokens);
      const ModelSource source(options->model);
      const auto device = make_device({.kind = "cpu", .threads = options->threads});
      // Floats are printed in the shortest form that reads back to the same bits.
      std::string text = "{\"logprobs\": [";
      bool first_list = true;
      for (const std::vector<float>& logprobs : score_tokens(source, *device, sequences)) {
        text += first_list ? "[" : ", [";
        first_list = false;
        for (size_t t = 0; t < logprobs.size(); ++t) {
          text += (t == 0 ? "" : ", ") + json_float(logprobs[t]);
        }
        text += "]";
      }
      std::fputs((text + "]}\n").c_str(), stdout);
      return kExitDone;
    };
  });
}

}  // namespace skein
