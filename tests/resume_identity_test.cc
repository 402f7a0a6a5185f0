// A run goes on as the run that it is: another model, tokenizer, text or precision is refused,
// naming key and both values, before anything is written; what may change is said and recorded.
#include <set>

#include "tests/trained_job.h"

namespace skein {
namespace {

const TrainedJob& job() {
  static const TrainedJob job;
  return job;
}

// Names and bytes of all that a folder holds, but for logs.
std::map<std::string, std::string> contents(const fs::path& folder) {
  std::map<std::string, std::string> found;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    const std::string name = entry.path().lexically_relative(folder).string();
    // Of starts, not of the run: a refused one leaves these, too.
    if (name.starts_with("logs") || name.starts_with("rendezvous") || name == "events.jsonl")
      continue;
    if (entry.path().filename() == ".lock" || name == ".events_told") continue;
    found[name] = entry.is_regular_file() ? read_file(entry.path()) : "";
  }
  return found;
}

Json start_event(const fs::path& run) {
  Json found;
  for (const OrderedJson& event : read_json_lines(run / "events.jsonl")) {
    if (event.at("event") == "start") found = Json::parse(event.dump());
  }
  return found;
}

struct Case {
  const char* name;
  Overrides overrides;
  Words words;
  std::string accept = {};  // the value of run.accept_changes that allows it; empty: nothing does
  std::string otherwise = "model.init_from";  // what to do instead
};
void PrintTo(const Case& test, std::ostream* out) { *out << test.name; }

class Resume : public ::testing::TestWithParam<Case> {};

// Everything that the run folder holds is as it was.
TEST_P(Resume, RefusesAnotherRunAndTouchesNothing) {
  job().copy_run("refused");
  const auto before = contents(job().run("refused"));
  Overrides overrides = TrainedJob::with(GetParam().overrides);
  for (std::string& text : overrides) {
    if (text == "data.train=OTHER") text = "data.train=" + job().other_corpus().string();
    if (text == "data.tokenizer=OTHER") text = "data.tokenizer=" + job().other_tokenizer().string();
  }
  Words words = GetParam().words;
  words.insert(words.end(), {"refused/checkpoints/step-00000004", GetParam().otherwise});
  if (!GetParam().accept.empty())
    words.push_back("run.accept_changes = \"" + GetParam().accept + "\"");
  expect_refused(job().train("refused", overrides), 2, words);
  EXPECT_TRUE(contents(job().run("refused")) == before) << "the run folder was changed";

  overrides.push_back("run.accept_changes=" +
                      (GetParam().accept.empty()
                           ? "model.rope_theta, model.head_dim, precision.mode"
                           : GetParam().accept));
  const Outcome accepted = job().train("refused", overrides);
  if (GetParam().accept.empty()) {
    expect_refused(accepted, 2, GetParam().words);
    return;
  }
  ASSERT_EQ(accepted.exit_code, 0) << accepted.err;
  EXPECT_NE(accepted.err.find("changed since step 4: "), std::string::npos) << accepted.err;
  std::set<std::string> changed;
  const Json start = start_event(job().run("refused"));
  for (const Json& change : start.at("changed")) {
    changed.insert(change.at("key"));
  }
  EXPECT_TRUE(changed.contains(GetParam().accept.substr(0, GetParam().accept.find(','))));
  // What it is now is what it goes on as, without being told again.
  overrides.pop_back();
  overrides.push_back("run.steps=7");
  EXPECT_EQ(job().train("refused", overrides).exit_code, 0);
}

INSTANTIATE_TEST_SUITE_P(
    Cases, Resume,
    ::testing::Values(
        Case{"layers",
             {"model.num_hidden_layers=1"},
             {"model.num_hidden_layers is 2 there and 1 in the configuration"},
             {},
             "such a model is a new run"},
        Case{"tied",
             {"model.tie_word_embeddings=true"},
             {"model.tie_word_embeddings is false there and true", "lm_head.weight"},
             {},
             "such a model is a new run"},
        Case{"rope_theta",
             {"model.rope_theta=500000.0"},
             {"model.rope_theta is 10000.0 there and 500000.0 in the configuration"},
             "model.rope_theta"},
        Case{"rope_scaling",
             {"model.rope_scaling={rope_type=\"linear\",factor=2.0}"},
             {"model.rope_scaling is null there and {\"factor\":2.0"},
             "model.rope_scaling"},
        Case{"epsilon",
             {"model.rms_norm_eps=1e-3"},
             {"model.rms_norm_eps is 1e-06 there and 0.001"},
             "model.rms_norm_eps"},
        Case{"heads",
             {"model.num_attention_heads=8", "model.num_key_value_heads=4"},
             {"model.num_attention_heads is 4 there and 8", "model.head_dim is 16 there and 8"},
             "model.head_dim, model.num_attention_heads, model.num_key_value_heads"},
        Case{"document_mask",
             {"data.document_mask=false"},
             {"data.document_mask is true there and false"},
             "data.document_mask"},
        Case{"sequence_length",
             {"data.sequence_length=32"},
             {"data.sequence_length is 64 there and 32"},
             "data.sequence_length"},
        Case{"precision",
             {"precision.mode=bf16"},
             {"precision.mode is \"fp32\" there and \"bf16\""}},
        Case{"moments",
             {"precision.moments=bf16"},
             {"precision.moments is \"fp32\" there and \"bf16\"", "exp_avg."}},
        Case{"optimizer",
             {"optimizer.name=muon"},
             {"optimizer.name is \"adamw\" there and \"muon\"", "momentum."}},
        Case{"tokenizer",
             {"data.tokenizer=OTHER"},
             {"data.tokenizer is ", "tokenizer (320 tokens, xxh3", "other_tokenizer (320 tokens"},
             "data.tokenizer"},
        Case{"corpus",
             {"data.train=OTHER"},
             {"data.train is ", "corpus.arrow (", "other.arrow (", "documents"},
             "data.train"},
        Case{"seed", {"run.seed=2"}, {"run.seed is 1 there and 2"}},
        Case{"lanes", {"data.lanes=8"}, {"data.lanes", "was trained with 4"}}),
    [](const auto& info) { return std::string(info.param.name); });

TEST(Resume, PrecisionOfTheSameTensorsIsRefusedUnlessAccepted) {
  job().trained("rounded", TrainedJob::with({"run.steps=2"}, "bf16-sr"));
  const Overrides nearest = TrainedJob::with({"run.steps=4"}, "bf16");
  expect_refused(job().train("rounded", nearest), 2,
                 {"precision.mode is \"bf16-sr\" there and \"bf16\" in the configuration",
                  "run.accept_changes = \"precision.mode\""});
  Overrides accepted = nearest;
  accepted.push_back("run.accept_changes=precision.mode");
  EXPECT_EQ(job().train("rounded", accepted).exit_code, 0);
  // Without its masters, mixed is another run.
  job().trained("mixed", TrainedJob::with({"run.steps=2"}, "mixed"));
  expect_refused(job().train("mixed", nearest), 2,
                 {"precision.mode is \"mixed\" there", "'master.model.embed_tokens.weight'",
                  "no place in this configuration"});
}

TEST(Resume, SaysAndRecordsWhatElseChanged) {
  job().copy_run("changed");
  const Outcome outcome = job().train(
      "changed", TrainedJob::with({"optimizer.learning_rate=5e-4", "model.pad_token_id=0"}));
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  for (const char* text : {"changed since step 4: ", "optimizer.learning_rate 0.001 → 0.0005",
                           "run.steps 4 → 6", "model.pad_token_id null → 0"}) {
    EXPECT_NE(outcome.err.find(text), std::string::npos) << text << "\n" << outcome.err;
  }
  EXPECT_EQ(outcome.err.find("data.tokenizer"), std::string::npos) << outcome.err;
  const Json start = start_event(job().run("changed"));
  bool found = false;
  for (const Json& change : start.at("changed")) {
    found |= change ==
             Json{{"key", "optimizer.learning_rate"}, {"before", "0.001"}, {"after", "0.0005"}};
  }
  EXPECT_TRUE(found) << start;
  // Nothing changed: nothing is said.
  Overrides same = TrainedJob::with({"optimizer.learning_rate=5e-4", "model.pad_token_id=0"});
  const Outcome again = job().train("changed", same);
  EXPECT_EQ(again.err.find("changed since"), std::string::npos) << again.err;
}

TEST(Resume, FilesThatMovedAreTheSame) {
  job().copy_run("moved_files");
  const fs::path corpus = job().folder / "elsewhere.arrow", tokenizer = job().folder / "elsewhere";
  fs::copy(job().corpus(), corpus, fs::copy_options::overwrite_existing);
  fs::remove_all(tokenizer);
  fs::copy(job().tokenizer(), tokenizer, fs::copy_options::recursive);
  const Outcome outcome = job().train(
      "moved_files",
      TrainedJob::with({"data.train=" + corpus.string(), "data.tokenizer=" + tokenizer.string()}));
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_EQ(outcome.err.find("data.train"), std::string::npos) << outcome.err;
}

// What rank 0 finds ends every rank, with that one cause.
TEST(Resume, SeveralRanksRefuseAlike) {
  job().copy_run("ranks");
  const auto before = contents(job().run("ranks"));
  expect_refused(
      job().train("ranks", TrainedJob::with({"launch.workers=2", "model.rope_theta=500000.0"})), 2,
      {"model.rope_theta is 10000.0 there and 500000.0"});
  EXPECT_TRUE(contents(job().run("ranks")) == before);
  const Outcome accepted = job().train("ranks", TrainedJob::with({"launch.workers=2"}));
  EXPECT_EQ(accepted.exit_code, 0) << accepted.err;
}

TEST(Resume, RefusesAKeyThatCannotBeAccepted) {
  expect_refused(job().train("run", TrainedJob::with({"run.accept_changes=model.rope_thet"})), 2,
                 {"accept_changes names \"model.rope_thet\"", "did you mean model.rope_theta?"});
}

// A first start that is refused leaves nothing behind, not even parents.
TEST(FirstStart, ThatFailsLeavesNoFolders) {
  const fs::path outer = job().folder / "new";
  const Overrides checkpoints = {"checkpoint.dir=" + (job().folder / "new_checkpoints").string()};
  const struct {
    Overrides overrides;
    int exit_code;
  } failures[] = {{{"model.init_from=" + (job().folder / "nowhere").string()}, 2},
                  {{"batch.global_sequences=3000", "data.sequence_length=128"}, 2},
                  {{"run.resume=" + (job().folder / "nowhere").string()}, 1},
                  {{"model.rope_theta=5.0", "model.init_from=" + job().run("run").string()}, 2}};
  for (const auto& failure : failures) {
    for (const char* workers : {"1", "2"}) {
      Overrides overrides = failure.overrides;
      overrides.insert(overrides.end(), checkpoints.begin(), checkpoints.end());
      overrides.push_back(std::string("launch.workers=") + workers);
      const Outcome outcome = job().train("new/deep/run", overrides);
      EXPECT_NE(outcome.exit_code, 0);
      EXPECT_FALSE(fs::exists(outer)) << outcome.err;
      EXPECT_FALSE(fs::exists(job().folder / "new_checkpoints")) << outcome.err;
    }
  }
  // What a person put there stays.
  fs::create_directories(outer / "deep" / "run");
  std::ofstream(outer / "deep" / "run" / "notes.txt") << "mine";
  EXPECT_NE(job().train("new/deep/run", failures[0].overrides).exit_code, 0);
  EXPECT_EQ(contents(outer), (std::map<std::string, std::string>{
                                 {"deep", ""}, {"deep/run", ""}, {"deep/run/notes.txt", "mine"}}));
  fs::remove_all(outer);
}

// All of the tokenizer's files change together, or none.
TEST(RunFolder, NeverMixesTwoTokenizers) {
  job().copy_run("swapped");
  const fs::path alone = job().folder / "model_alone";
  fs::remove_all(alone);
  fs::create_directories(alone);
  fs::copy(job().other_tokenizer() / "tokenizer.model", alone / "tokenizer.model");
  const Outcome outcome = job().train(
      "swapped",
      TrainedJob::with({"data.tokenizer=" + alone.string(), "run.accept_changes=data.tokenizer"}));
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_EQ(contents(job().run("swapped") / "tokenizer"), contents(alone));
}

// The run's files say what it trained with, also after a start that asked for less.
TEST(RunFolder, StaysAsItIsWhereThereIsNothingToDo) {
  job().copy_run("done");
  const auto files = [] {
    auto found = contents(job().run("done"));
    found.erase("events.jsonl");  // tells of the start
    return found;
  };
  const auto before = files();
  const Outcome outcome = job().train("done", TrainedJob::with({"run.steps=3"}));
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_NE(outcome.err.find("nothing to do"), std::string::npos) << outcome.err;
  EXPECT_TRUE(files() == before) << read_file(job().run("done") / "config.toml");
}

TEST(Config, ConfigDirStandsAtTheBeginningOfAPath) {
  expect_refused(job().train("run", {"data.train=x/{config_dir}/y"}), 2,
                 {"data.train is", "x/{config_dir}/y", "expected {config_dir} at the beginning"});
}

// The spread of initial weights is that of config.json where the configuration has none, and an
// export says what was drawn.
TEST(InitializerRange, OfAModelFileIsWhatIsDrawn) {
  const TinyJob job;
  const auto file = [&](double range) {
    const fs::path path = job.folder / fmt::format("range_{}.json", range);
    std::ofstream(path) << Json{{"initializer_range", range}};
    return "model.hf_config=" + path.string();
  };
  job.trained("of_model", {"run.steps=1", file(0.2)});
  job.trained("of_key", {"run.steps=1", "model.init_std=0.2"});
  job.trained("of_both", {"run.steps=1", "model.init_std=0.2", file(0.05)});
  EXPECT_EQ(read_curve(job.run("of_model")), read_curve(job.run("of_key")));
  EXPECT_EQ(read_curve(job.run("of_both")), read_curve(job.run("of_key")));
  // Workers are given the configuration as text.
  const auto baseline = [&](const char* workers) -> double {
    const Outcome outcome = TinyJob::must(
        job.arguments("train", "none",
                      {file(0.2), workers, "parallel.reduction_width=2",
                       "data.validation=" + job.corpus().string(), "validate.batches=1"}) +
        Arguments{"--validate-only", "--json"});
    return parse_json(outcome.out, "baseline").at("validation").at(0).at("loss");
  };
  EXPECT_EQ(baseline("launch.workers=1"), baseline("launch.workers=2"));
  for (const char* name : {"of_model", "of_key", "of_both"}) {
    const fs::path out = job.folder / (std::string(name) + "_hf");
    TinyJob::must({"checkpoint", "export", job.run(name).string(), "--out", out.string()});
    EXPECT_EQ(read_json((out / "config.json").string()).at("initializer_range"), 0.2) << name;
    // The run's own folder has what was drawn, so that it continues without a change.
    const Outcome more = TinyJob::must({"train", job.run(name).string(), "--set", "run.steps=2"});
    EXPECT_EQ(more.err.find("initializer_range"), std::string::npos) << more.err;
    EXPECT_EQ(more.err.find("init_std"), std::string::npos) << more.err;
  }
}

}  // namespace
}  // namespace skein
