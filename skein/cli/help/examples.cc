#include "skein/cli/help/examples.h"

#include <string_view>

#include "skein/base/error.h"
#include "skein/config/other_words.h"

namespace skein {
namespace {

struct Examples {
  std::string_view command;
  std::string_view text;  // lines, each a command or a comment after #
};

constexpr Examples kExamples[] = {
    {"train",
     "skein train run.toml\n"
     "skein train run.toml --set run.steps=1000 --set optimizer.learning_rate=1e-3\n"
     "skein train run.toml --set launch.workers=4 --set parallel.tensor=2\n"
     "skein train run.toml --sweep optimizer.learning_rate=1e-3,3e-4 --side-by-side 2\n"
     "skein train runs/mine --decay-from-now   # the learning rate decays to the end of the run\n"
     "skein train runs/mine/config.toml        # continues a run\n"
     "skein train run.toml --validate-only     # the baseline of continued pre-training"},
    {"plan",
     "skein plan run.toml\n"
     "skein plan run.toml --ranks 512 --hardware configs/hardware/h100-8x.toml\n"
     "skein plan run.toml --ranks 512 --hardware configs/hardware/h100-8x.toml --search\n"
     "skein plan run.toml --ranks 512 --hardware configs/hardware/h100-8x.toml --goodput\n"
     "skein plan run.toml --calibrate this-machine.toml --workers 2"},
    {"compile",
     "skein compile run.toml\n"
     "skein compile run.toml --set device.compile_cache=s3://team/compiled --jobs 8"},
    {"data ingest",
     "skein data ingest --out corpus.arrow texts/ more.jsonl.gz table.parquet\n"
     "skein data ingest --out corpus.arrow --validation-out validation.arrow texts/"},
    {"data clean",
     "skein data clean --out clean.arrow --report clean.html texts/ more.jsonl.zst\n"
     "skein data clean --out clean.arrow --language-model lid.176.bin --set c4=off texts/\n"
     "skein data clean --list-rules"},
    {"data dedup",
     "skein data dedup --out clean.arrow corpus.arrow\n"
     "skein data dedup --out clean.arrow --against test.jsonl --memory 8GiB texts/"},
    {"data tokenizer",
     "skein data tokenizer --vocab-size 32000 --out tokenizer corpus.arrow\n"
     "skein data tokenizer --kind byte-level --pattern llama3 --vocab-size 128000 --out tokenizer "
     "corpus.arrow"},
    {"data sample",
     "skein data sample run.toml --step 1\n"
     "skein data sample run.toml --step 1000 --json > step.json"},
    {"data show",
     "skein data show corpus.arrow --document 17 --around 2\n"
     "skein data show corpus.arrow --find \"lorem ipsum\" --tokenizer tokenizer\n"
     "skein data show run.toml --step 1000 --lane 3         # what that row is made of"},
    {"data stats", "skein data stats corpus.arrow --tokenizer tokenizer"},
    {"checkpoint list", "skein checkpoint list runs/mine"},
    {"checkpoint verify",
     "skein checkpoint verify runs/mine\n"
     "skein checkpoint verify runs/mine/checkpoints/step-00001000 --json"},
    {"checkpoint export",
     "skein checkpoint export runs/mine --out hf        # the newest good checkpoint\n"
     "skein checkpoint export runs/mine/checkpoints/step-00001000 --out hf"},
    {"serve",
     "skein serve runs/mine --listen 127.0.0.1:8000\n"
     "curl http://127.0.0.1:8000/v1/completions -d '{\"prompt\": \"Once\", \"max_tokens\": 32}'"},
    {"eval",
     "skein eval hf --tasks hellaswag,arc_easy --data data\n"
     "skein eval runs/mine --tasks mmlu --num-fewshot 5 --data data --out results --log-samples\n"
     "skein eval hf --tasks humaneval,mbpp --data data --execute"},
    {"score",
     "echo '[[1, 15043, 3186]]' > tokens.json\n"
     "skein score --model hf --tokens tokens.json\n"
     "skein score --model runs/mine --corpus held.arrow     # loss, perplexity, bits per byte"},
    {"generate",
     "skein generate --model hf --prompt 'Once upon a time'\n"
     "skein generate --model runs/mine --prompt '#include <' --temperature 0 --max-tokens 50"},
    {"report",
     "skein report runs/mine\n"
     "skein report runs/mine runs/other --html report.html   # curves and tables, without network\n"
     "skein report sweep/* --diff --sort validation.loss\n"
     "skein report runs/mine --json"},
    {"why",
     "skein why runs/mine --step 1204\nskein why runs/mine --step 1204 --exact --top 3 "
     "--json\n"
     "skein why runs/mine --step 1204 --save     # for the page of skein report\n"
     "skein why runs/mine --batch 1207        # a batch that a roll-back left out"},
    {"launch",
     "skein launch --slurm run.toml --print\n"
     "skein launch --slurm run.toml --set launch.nodes=4 --time 2-00:00:00 --partition gpu\n"
     "skein launch --slurm run.toml --sweep optimizer.learning_rate=1e-3,3e-4\n"
     "skein launch --jobset run.toml --image registry/skein:1 --volume shared:/data --print"},
    {"check",
     "skein check run.toml\n"
     "skein check run.toml --set launch.workers=4 --json\n"
     "srun -N 4 skein check run.toml --set launch.nodes=4"},
    {"version", "skein version --json"},
    {"completion",
     "source <(skein completion bash)\n"
     "skein completion zsh > ~/.zfunc/_skein\n"
     "skein completion fish > ~/.config/fish/completions/skein.fish"},
};

constexpr std::string_view kOfTheProgram =
    "Exit codes: 0 done; 1 failed; 2 the command line or a configuration is wrong; 75 stopped by "
    "a\n"
    "signal after saving, run again to continue.\n"
    "\n"
    "Examples:\n"
    "  skein data ingest --out corpus.arrow texts/\n"
    "  skein data tokenizer --vocab-size 4096 --out tokenizer corpus.arrow\n"
    "  skein plan run.toml\n"
    "  skein train run.toml\n"
    "  skein checkpoint export runs/mine --out hf\n"
    "  skein generate --model hf --prompt 'Once upon a time'\n"
    "\n"
    "skein COMMAND --help tells more of one command.";

std::string indented(std::string_view text) {
  std::string result = "Examples:\n  ";
  for (const char letter : text) {
    result += letter;
    if (letter == '\n') result += "  ";
  }
  return result;
}

void add_examples_below(CLI::App& group, const std::string& prefix) {
  for (CLI::App* command : group.get_subcommands({})) {
    const std::string name = prefix + command->get_name();
    if (!command->get_subcommands({}).empty()) {
      add_examples_below(*command, name + " ");
      continue;
    }
    if (command->get_group().empty()) continue;  // hidden
    for (const Examples& examples : kExamples) {
      if (examples.command != name) continue;
      const bool has_keys = name == "train" || name == "plan";
      command->footer(indented(examples.text) + (has_keys ? "\n\n" + other_words_help() : ""));
    }
    if (command->get_footer().empty()) {
      fail(ErrorCode::kInternal, "the command {} has no examples in skein/cli/help/examples.cc",
           name);
    }
  }
}

}  // namespace

void add_examples(CLI::App& app) {
  app.footer(std::string(kOfTheProgram));
  add_examples_below(app, "");
}

}  // namespace skein
