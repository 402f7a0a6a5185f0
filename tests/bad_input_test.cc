// Bad input of every kind: exit code 1 (2 where the command line or the configuration is wrong),
// one line `skein: …` that names what was found and what was expected, nothing on standard output,
// and no harm to what was saved before.
#include "tests/testing.h"

namespace skein {
namespace {

// The job, with a run `good` of two checkpoints (steps 2 and 4) and its export.
struct GoodJob : TinyJob {
  GoodJob() {
    trained("good", {"run.steps=4", "checkpoint.every_steps=2"});
    must({"checkpoint", "export", checkpoint("good", 4).string(), "--out", exported().string()});
  }
  fs::path exported() const { return folder / "exported"; }

  // A copy of a file or folder that a test may damage.
  fs::path copy_of(const fs::path& path, const std::string& name) const {
    fs::remove_all(folder / name);
    fs::copy(path, folder / name, fs::copy_options::recursive);
    return folder / name;
  }
  fs::path write(const std::string& name, const std::string& text) const {
    std::ofstream(folder / name, std::ios::binary) << text;
    return folder / name;
  }
};

const GoodJob& job() {
  static const GoodJob job;
  return job;
}

void damage_middle(const fs::path& path) {
  std::string bytes = read_file(path);
  for (size_t i = 0; i < 64; ++i) bytes[bytes.size() / 2 + i] ^= 0x5a;
  std::ofstream(path, std::ios::binary) << bytes;
}

void truncate_half(const fs::path& path) { fs::resize_file(path, fs::file_size(path) / 2); }
void empty(const fs::path& path) { fs::resize_file(path, 0); }

constexpr const char* kLfsPointer =
    "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a21\nsize 26982594\n";

void expect_refused(const Arguments& arguments, int exit_code, const Words& words) {
  SCOPED_TRACE(fmt::format("skein {}", fmt::join(arguments, " ")));
  expect_refused(run_skein(arguments), exit_code, words);
}

// `skein train` in the folder of the good run, which it must not harm.
void expect_training_refused(const Overrides& overrides, int exit_code, const Words& words) {
  expect_refused(job().arguments("train", "good", overrides), exit_code, words);
}

TEST(BadInput, Configuration) {
  const struct {
    const char* override;
    Words words;
  } mistakes[] = {
      {"run.stepz=3", {"unknown key stepz in [run]", "did you mean steps?"}},
      {"rnu.steps=3", {"unknown section [rnu]", "did you mean [run]?"}},
      {"batch.gradient_accumulation=4", {"gradient accumulation: follows from"}},
      {"model.init_from=Qwen/Qwen3-0.6B",
       {"model.init_from is 'Qwen/Qwen3-0.6B'",
        "`hf download Qwen/Qwen3-0.6B --local-dir Qwen3-0.6B`"}},
      {"run.steps=many", {"run.steps=many", "expected a whole number"}},
      {"run.steps=1.5", {"steps in [run] is 1.5", "expected a whole number"}},
      {"checkpoint.async=\"no\"", {"async", "true or false, without quotes"}},
      {"precision.mode=fp4", {"mode in [precision]", "fp4", "fp32, bf16, bf16-sr, mixed, fp8"}},
      {"optimizer.learning_rate=1e30", {"learning_rate", "1e+30", "a number above 0 to 1000"}},
      {"model.num_attention_heads=3",
       {"num_attention_heads is 3", "divisor of hidden_size 64, such as 2 or 4"}},
      {"model.num_key_value_heads=3",
       {"num_key_value_heads is 3", "divisor of num_attention_heads 4, such as 2 or 4"}},
      {"model.head_dim=15", {"head_dim is 15", "an even number", "head_dim 14 or 16 would do"}},
      {"model.hidden_size=-1", {"hidden_size is -1", "an integer from 1"}},
      {"model.vocab_size=100", {"vocab_size is 100", "320 tokens"}},
      {"data.sequence_length=1", {"sequence_length in [data] is 1", "from 2"}},
      {"batch.micro_sequences=8", {"micro_sequences is 8", "more than global_sequences", "4"}},
      {"batch.micro_sequences=3",
       {"global_sequences is 4", "multiple of micro_sequences",
        "3, such as 3 or 6; or micro_sequences 2 or 4"}},
      {"parallel.data=3", {"global_sequences is 4", "such as global_sequences 6"}},
      {"parallel.reduction_width=3", {"global_sequences is 4", "such as global_sequences 6"}},
      {"parallel.context=3", {"sequence_length is 64", "context = 6, such as 60 or 66"}},
      {"model.model_type=gpt2", {"model_type is \"gpt2\"", "expected one of \"llama\""}},
      {"model.hidden_act=gelu", {"hidden_act is \"gelu\"", "expected \"silu\""}},
      {"batch", {"--set batch", "expected section.key=value"}},
  };
  for (const auto& mistake : mistakes) {
    expect_training_refused({mistake.override}, 2, mistake.words);
  }
  const fs::path file = job().write("wrong.toml", read_file(job().config()) + "[validat]\nx = 1\n");
  expect_refused({"train", file.string()}, 2, {file.string() + ":", "did you mean [validate]?"});
  const fs::path torn = job().write("torn.toml", "[run]\ndir = \"x\nsteps = 3\n");
  expect_refused({"plan", torn.string(), "--json"}, 2, {torn.string() + ":2", "not valid TOML"});
  expect_refused({"plan", (job().folder / "nowhere.toml").string(), "--json"}, 2,
                 {"nowhere.toml", "No such file"});
  Arguments plan = job().arguments("plan", "good", {"model.num_attention_heads=3"});
  plan.push_back("--json");
  expect_refused(plan, 2, {"num_attention_heads is 3"});
  expect_training_refused({"model.hf_config=nowhere.json"}, 2,
                          {"model.hf_config is 'nowhere.json'", "no such file",
                           fs::current_path().string(), "{config_dir}/"});
  const fs::path model = job().write("model.json", "{\"hidden_size\": 64,");
  expect_training_refused({"model.hf_config=" + model.string()}, 1,
                          {model.string(), "not valid JSON"});
  expect_checkpoints_good(job().run("good"));
}

TEST(BadInput, Corpus) {
  const auto refused = [&](const fs::path& corpus, const Words& words) {
    expect_training_refused({"data.train=" + corpus.string()}, 1, words);
    expect_refused({"data", "stats", corpus.string(), "--json"}, 1, words);
  };
  // What is no corpus at all is a wrong configuration, and says which key.
  const auto no_corpus = [&](const fs::path& corpus, const Words& words) {
    for (const std::string key : {"data.train", "data.validation"}) {
      expect_training_refused({key + "=" + corpus.string()}, 2, {key});
      expect_training_refused({key + "=" + corpus.string()}, 2, words);
    }
    expect_refused({"data", "stats", corpus.string(), "--json"}, 1, words);
  };
  const std::string nowhere = (job().folder / "nowhere.arrow").string();
  no_corpus(nowhere, {"nowhere.arrow", "No such file"});
  // A plan needs no text, and says that it is not there.
  const Outcome plan =
      TinyJob::must(job().arguments("plan", "good", {"data.validation=" + nowhere}));
  EXPECT_EQ(plan.err.find(fmt::format("data.validation is '{}', which does not exist", nowhere)),
            0u)
      << plan.err;
  const fs::path file = job().folder / "damaged.arrow";
  job().copy_of(job().corpus(), "damaged.arrow");
  truncate_half(file);
  refused(file, {file.string(), "not a readable Arrow IPC", "Expected to be able to read"});
  empty(file);
  no_corpus(file, {file.string(), "is empty", "expected an Arrow IPC stream"});
  no_corpus(job().write("damaged.arrow", read_file(job().folder / "documents.jsonl")),
            {file.string(), "is no Arrow file (it begins with", "skein data ingest --out"});
  // Offsets that do not ascend.
  std::string bytes = read_file(job().corpus());
  for (size_t i = bytes.size() - 1400; i < bytes.size() - 1200; ++i) bytes[i] = '\x7f';
  refused(job().write("damaged.arrow", bytes),
          {file.string(), "record batch 0", "begins at byte", "expected"});
  // A run that begins: one that continues has the lanes of its checkpoint.
  const std::string begins = "run.dir=" + job().run("begins").string();
  expect_training_refused({begins, "batch.global_sequences=3000", "data.sequence_length=128"}, 2,
                          {"corpus.arrow", "smaller than one batch", "3000 sequences of 128",
                           "384000", "global_sequences"});
  expect_checkpoints_good(job().run("good"));
}

TEST(BadInput, Tokenizer) {
  const auto refused = [&](const fs::path& folder, const Words& words) {
    expect_training_refused({"data.tokenizer=" + folder.string()}, 1, words);
  };
  expect_training_refused({"data.tokenizer=" + (job().folder / "nowhere").string()}, 2,
                          {"data.tokenizer", "nowhere", "no such file or folder"});
  const fs::path folder = job().copy_of(job().tokenizer(), "damaged_tokenizer");
  const fs::path model = folder / "tokenizer.model";
  truncate_half(model);
  refused(folder, {model.string(), "not a SentencePiece model"});
  empty(model);
  refused(folder, {model.string(), "not a SentencePiece model", "no pieces"});
  std::ofstream(model) << "surely this is no protocol buffer";
  refused(folder, {model.string(), "not a SentencePiece model"});
  std::ofstream(model) << kLfsPointer;
  refused(folder, {model.string(), "a Git LFS pointer, not the file"});
  fs::remove(model);
  expect_training_refused({"data.tokenizer=" + folder.string()}, 2,  // tokenizer.json is another
                          {"was trained otherwise: data.tokenizer is", "damaged_tokenizer"});
  fs::remove(folder / "tokenizer.json");
  expect_training_refused({"data.tokenizer=" + folder.string()}, 2,
                          {"data.tokenizer", folder.string(), "neither tokenizer.model nor"});
  const fs::path made = job().folder / "made_tokenizer";
  expect_refused(
      {"data", "tokenizer", "--vocab-size", "10", "--out", made.string(), job().corpus().string()},
      2, {"--vocab-size 10", "more than 259"});
  expect_refused({"data", "tokenizer", "--vocab-size", "100000", "--out", made.string(),
                  job().corpus().string()},
                 2, {"--vocab-size 100000", "corpus.arrow"});
  expect_refused({"data", "tokenizer", "--vocab-size", "300", "--out", job().tokenizer().string(),
                  job().corpus().string()},
                 2, {"holds a tokenizer already", "--overwrite"});
  expect_refused({"data", "tokenizer", "--out", made.string()}, 2, {"FILE.arrow", "--vocab-size"});
  expect_refused({"data", "tokenizer", "--from-model", job().tokenizer().string(), "--vocab-size",
                  "300", "--out", made.string()},
                 2, {"--from-model", "--vocab-size"});
  expect_checkpoints_good(job().run("good"));
}

TEST(BadInput, VocabularySizesThatTheTextDoesNotGive) {
  const std::string out = (job().folder / "sizes").string(), corpus = job().corpus().string();
  const auto refused = [&](const std::string& size, const Words& words) {
    expect_refused({"data", "tokenizer", "--vocab-size", size, "--out", out, corpus}, 2, words);
    EXPECT_FALSE(fs::exists(out));
  };
  refused("100", {"--vocab-size 100: expected more than 259"});
  refused("262", {"--vocab-size 262: bytes, control tokens and the characters of " + corpus});
  refused("1000000", {"--vocab-size 1000000: the text of " + corpus + " gives", "at most"});
}

TEST(BadInput, HuggingFaceFolder) {
  const fs::path tokens = job().write("tokens.json", "[[1, 2, 3]]");
  const auto refused = [&](const fs::path& folder, const Words& words, int exit_code = 1) {
    expect_refused(job().arguments("train", "fresh", {"model.init_from=" + folder.string()}),
                   exit_code, words);
    expect_refused({"score", "--model", folder.string(), "--tokens", tokens.string()}, exit_code,
                   words);
  };
  refused(job().folder / "nowhere", {"nowhere", "not a folder", "Hugging Face model"}, 2);
  const auto fresh_copy = [&] { return job().copy_of(job().exported(), "damaged_export"); };
  const fs::path folder = fresh_copy();
  const fs::path weights = folder / "model.safetensors";
  const fs::path config = folder / "config.json";
  truncate_half(weights);
  refused(folder, {weights.string(), "bytes"});
  empty(weights);
  refused(folder, {weights.string(), "bytes"});
  std::ofstream(weights) << "not safetensors at all";
  refused(folder, {weights.string(), "header"});
  std::ofstream(weights) << kLfsPointer;
  refused(folder, {weights.string(), "a Git LFS pointer, not the file"});
  fs::remove(weights);
  refused(folder, {folder.string(), "expected model.safetensors"});
  fresh_copy();
  std::ofstream(config) << "{\"hidden_size\": 64";
  refused(folder, {config.string(), "not valid JSON"});
  empty(config);
  refused(folder, {config.string(), "not valid JSON"});
  // The weights are of another model.
  fresh_copy();
  Json json = read_json(config.string());
  json["intermediate_size"] = 100;
  std::ofstream(config) << json.dump();
  expect_refused({"score", "--model", folder.string(), "--tokens", tokens.string()}, 1,
                 {"model.layers.0.mlp.gate_proj.weight", "[176, 64]", "[100, 64]"});
  expect_refused(
      job().arguments("train", "fresh",
                      {"model.init_from=" + folder.string(), "model.intermediate_size=100"}),
      1, {"model.layers.0.mlp.gate_proj.weight", "[176, 64]", "[100, 64]"});
}

TEST(BadInput, ScoreAndGenerate) {
  const std::string model = job().exported().string();
  const struct {
    const char* text;
    Words words;
  } mistakes[] = {{"[[1, 2", {"not valid JSON"}},
                  {"{\"a\": 1}", {"list of lists of token ids", "object"}},
                  {"[[1, -2]]", {"-2 in list 0"}},
                  {"[[1, 320]]", {"320", "0 to 319"}},
                  {"[[]]", {"sequence 0 is empty"}}};
  for (const auto& mistake : mistakes) {
    const fs::path tokens = job().write("tokens.json", mistake.text);
    expect_refused({"score", "--model", model, "--tokens", tokens.string()}, 1, mistake.words);
  }
  expect_refused({"generate", "--model", model}, 2, {"--prompt is required"});
  expect_refused({"generate", "--model", model, "--prompt", "a", "--top-p", "2"}, 2, {"--top-p"});
  const Arguments longer = {"generate", "--model", model, "--prompt", "a", "--temperature", "0"};
  Arguments told = longer;
  told.insert(told.end(), {"--max-tokens", "500"});
  EXPECT_NE(TinyJob::must(told).err.find("--max-tokens 500: the model is meant for 256 tokens"),
            std::string::npos);
  EXPECT_EQ(TinyJob::must(longer).err, "");
  const fs::path no_tokenizer = job().copy_of(job().exported(), "no_tokenizer");
  for (const char* name : {"tokenizer.model", "tokenizer.json"}) fs::remove(no_tokenizer / name);
  expect_refused({"generate", "--model", no_tokenizer.string(), "--prompt", "a"}, 1,
                 {no_tokenizer.string(), "tokenizer.model"});
}

// Damages a checkpoint's `file` of step 4, then both.
TEST(BadInput, Checkpoints) {
  struct Damage {
    const char* file;
    void (*apply)(const fs::path&);
    Words words;
  };
  const auto remove = [](const fs::path& path) { fs::remove(path); };
  const Damage damages[] = {
      {"manifest.json", truncate_half, {"manifest.json", "its checksum is"}},
      {"manifest.json", empty, {"manifest.json", "expected a first line"}},
      {"manifest.json", remove, {"manifest.json", "No such file"}},
      {"weights-00000-00000.safetensors", damage_middle, {"weights-00000", "checksum"}},
      {"weights-00000-00000.safetensors", truncate_half, {"weights-00000", "bytes", "expected"}},
      {"optimizer-00000-00000.safetensors", empty, {"optimizer-00000", "0 bytes", "expected"}},
      {"optimizer-00000-00000.safetensors", damage_middle, {"optimizer-00000", "checksum"}},
      {"optimizer-00000-00000.safetensors", remove, {"optimizer-00000", "No such file"}},
  };
  for (const Damage& damage : damages) {
    SCOPED_TRACE(damage.file);
    job().copy_of(job().run("good"), "damaged");
    const fs::path newest = job().checkpoint("damaged", 4);
    damage.apply(newest / damage.file);
    // Named, it is refused; of a run, it is passed over.
    expect_refused(job().arguments("train", "fresh", {"run.resume=" + newest.string()}), 1,
                   damage.words);
    const Outcome verified =
        run_skein({"checkpoint", "verify", job().run("damaged").string(), "--json"});
    EXPECT_EQ(verified.exit_code, 1);
    const Json report = Json::parse(verified.out);
    EXPECT_EQ(report.at("checkpoints").at(0).at("ok"), false);
    EXPECT_EQ(report.at("checkpoints").at(1).at("ok"), true);
    for (const std::string& word : damage.words) {
      EXPECT_NE(report.at("checkpoints").at(0).at("error").get<std::string>().find(word),
                std::string::npos)
          << report;
    }
    const Outcome resumed = job().train("damaged", {"run.steps=5"});
    EXPECT_EQ(resumed.exit_code, 0) << resumed.err;
    EXPECT_NE(resumed.err.find(newest.filename().string()), std::string::npos) << resumed.err;
    EXPECT_NE(resumed.err.find(damage.words[1]), std::string::npos) << resumed.err;
    EXPECT_EQ(read_curve(job().run("damaged")).rbegin()->first, 5);
  }
  job().copy_of(job().run("good"), "damaged");
  for (const int64_t step : {2, 4}) empty(job().checkpoint("damaged", step) / "manifest.json");
  expect_refused(job().arguments("train", "damaged", {}), 1, {"none of the 2 checkpoints", "good"});
  EXPECT_TRUE(fs::exists(job().checkpoint("damaged", 2) / "weights-00000-00000.safetensors"));
  expect_refused({"checkpoint", "list", "/nowhere", "--json"}, 1, {"/nowhere is not a folder"});
}

TEST(BadInput, AnotherConfigurationThanTheCheckpoints) {
  expect_training_refused({"run.seed=2"}, 2, {"run.seed is 1 there and 2"});
  expect_training_refused({"precision.mode=mixed"}, 2, {"step-00000004", "master"});
  expect_training_refused({"model.intermediate_size=100"}, 2,
                          {"model.intermediate_size is 176 there and 100", "[176, 64]"});
  expect_training_refused({"data.lanes=8"}, 2, {"data.lanes is 8", "was trained with 4"});
  expect_checkpoints_good(job().run("good"));
}

TEST(BadInput, ExportToAFolderThatIsThere) {
  expect_refused({"checkpoint", "export", job().run("good").string(), "--out", "."}, 2,
                 {"--out .", "a new folder"});
}

TEST(BadInput, LossThatIsNotFinite) {
  job().trained("nan", {"run.steps=2", "precision.mode=fp32"});
  const Outcome outcome =
      job().train("nan", {"run.steps=50", "precision.mode=fp32", "optimizer.clip_norm=0",
                          "optimizer.learning_rate=1000", "optimizer.warmup_steps=0"});
  expect_refused(outcome, 1,
                 {"the loss is", "nan", "expected finite numbers",
                  "The newest checkpoint is of step 2", "optimizer.learning_rate"});
  expect_checkpoints_good(job().run("nan"));
  EXPECT_FALSE(fs::exists(job().checkpoint("nan", 50)));
}

TEST(BadInput, RunFolderInUse) {
  SkeinProcess first(job().arguments("train", "shared", {"run.steps=900000"}));
  const auto has_trained = [&] {
    return !read_json_lines(job().run("shared") / "metrics.jsonl").empty();
  };
  for (int i = 0; i < 30'000 && !has_trained(); ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  expect_refused(job().arguments("train", "shared", {"run.steps=3"}), 1,
                 {job().run("shared").string(), "in use by process", "another run.dir"});
  int64_t starts = 0;
  for (const OrderedJson& event : read_json_lines(job().run("shared") / "events.jsonl")) {
    starts += event.at("event") == "start" ? 1 : 0;
  }
  EXPECT_EQ(starts, 1);
  first.send(SIGTERM);
  const Outcome outcome = first.wait();
  EXPECT_EQ(outcome.exit_code, 75) << outcome.err;
  EXPECT_EQ(outcome.error_lines().size(), 0u) << outcome.err;
  expect_checkpoints_good(job().run("shared"));
}

}  // namespace
}  // namespace skein
