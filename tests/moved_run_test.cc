// A run folder that was moved, with its corpora or without, goes on where it is.
#include "tests/trained_job.h"

namespace skein {
namespace {

const TrainedJob& job() {
  static const TrainedJob job;
  return job;
}

// Runs `skein` in another working directory.
Outcome run_in(const fs::path& folder, const Arguments& arguments) {
  const fs::path before = fs::current_path();
  fs::current_path(folder);
  const Outcome outcome = run_skein(arguments);
  fs::current_path(before);
  return outcome;
}

TEST(MovedRun, GoesOnWhereItIs) {
  const fs::path place = job().folder / "place", other = job().folder / "other_place";
  fs::create_directories(place);
  fs::create_directories(other);
  // Everything relative, and one corpus inside the run.
  fs::copy(job().corpus(), place / "corpus.arrow", fs::copy_options::overwrite_existing);
  fs::copy(job().tokenizer(), place / "tok",
           fs::copy_options::recursive | fs::copy_options::overwrite_existing);
  fs::create_directories(place / "runs" / "a");
  fs::copy(job().corpus(), place / "runs" / "a" / "held_out.arrow");
  Json model = {{"hidden_size", 64},           {"intermediate_size", 176},
                {"num_hidden_layers", 2},      {"num_attention_heads", 4},
                {"num_key_value_heads", 2},    {"max_position_embeddings", 256},
                {"initializer_range", 0.0125}, {"rope_theta", 5000.0}};
  std::ofstream(place / "model.json") << model.dump();
  std::ofstream(place / "job.toml")
      << "[run]\ndir = \"runs/a\"\nsteps = 4\n[model]\nhf_config = \"model.json\"\n"
         "[data]\ntrain = \"corpus.arrow\"\ntokenizer = \"tok\"\nsequence_length = 64\n"
         "validation = \"runs/a/held_out.arrow\"\n"
         "[batch]\nglobal_sequences = 4\nmicro_sequences = 2\n[precision]\nmode = \"fp32\"\n"
         "[optimizer]\nlearning_rate = 1e-3\nwarmup_steps = 4\ndecay_steps = 1000\n"
         "[validate]\nbatches = 1\n[checkpoint]\nevery_steps = 0\n";
  const Outcome begun = run_in(place, {"train", "job.toml"});
  ASSERT_EQ(begun.exit_code, 0) << begun.err;

  fs::rename(place / "runs" / "a", place / "runs" / "b");
  fs::remove(place / "model.json");  // the run has its own
  fs::remove_all(place / "tok");
  const Outcome moved =
      run_in(other, {"train", "../place/runs/b/config.toml", "--set", "run.steps=6"});
  ASSERT_EQ(moved.exit_code, 0) << moved.err;
  EXPECT_NE(moved.err.find("resuming after step 4 from ../place/runs/b/checkpoints"),
            std::string::npos)
      << moved.err;
  EXPECT_FALSE(fs::exists(place / "runs" / "a"));
  EXPECT_FALSE(fs::exists(other / "runs"));
  EXPECT_EQ(read_curve(place / "runs" / "b").size(), 6u);
  EXPECT_EQ(read_json((place / "runs" / "b" / "model.json").string()).at("initializer_range"),
            0.0125);

  // Again from inside it, by name alone.
  const Outcome inside =
      run_in(place / "runs" / "b", {"train", "config.toml", "--set", "run.steps=7"});
  ASSERT_EQ(inside.exit_code, 0) << inside.err;
  EXPECT_NE(inside.err.find("resuming after step 6"), std::string::npos) << inside.err;
  EXPECT_EQ(read_json_lines(place / "runs" / "b" / "metrics.jsonl").size(), 7u);

  // The person's own file: its tokenizer and model are gone, the run's copies serve.
  const Outcome own = run_in(place, {"train", "job.toml", "--set", "run.dir=runs/b", "--set",
                                     "data.validation=", "--set", "run.steps=8"});
  ASSERT_EQ(own.exit_code, 0) << own.err;
  EXPECT_NE(own.err.find("the tokenizer tok is gone: taking the run's own copy"), std::string::npos)
      << own.err;
  EXPECT_NE(own.err.find("changed since step 7: run.steps 7 → 8, data.validation "),
            std::string::npos)
      << own.err;
  EXPECT_NE(own.err.find("model.json is gone: taking the run's own copy"), std::string::npos)
      << own.err;
}

// To another place, with its corpora beside it or in it.
TEST(MovedRun, FindsItsCorporaBesideIt) {
  const fs::path parent = job().folder.path().lexically_normal();
  const fs::path place = parent / "was", other = parent / "is";
  fs::create_directories(place);
  for (const char* name : {"train.arrow", "held_out.arrow"}) fs::copy(job().corpus(), place / name);
  Arguments arguments = job().arguments(
      "train", "was/run",
      {"run.steps=2", "precision.mode=fp32", "data.train=" + (place / "train.arrow").string(),
       "data.validation=" + (place / "held_out.arrow").string(), "validate.batches=1"});
  ASSERT_EQ(run_skein(arguments).exit_code, 0);
  fs::rename(place, other);
  fs::rename(other / "held_out.arrow", other / "run" / "held_out.arrow");
  const Arguments go_on = {"train", (other / "run" / "config.toml").string(), "--set"};
  const Outcome moved = run_skein(go_on + Arguments{"run.steps=3"});
  ASSERT_EQ(moved.exit_code, 0) << moved.err;
  for (const auto& [gone, found] : {std::pair{"train.arrow", "is/train.arrow"},
                                    std::pair{"held_out.arrow", "is/run/held_out.arrow"}}) {
    EXPECT_NE(moved.err.find((place / gone).string() + "', which is gone: taking"),
              std::string::npos)
        << moved.err;
    EXPECT_NE(moved.err.find((parent / found).string()), std::string::npos) << moved.err;
  }
  EXPECT_NE(moved.err.find("resuming after step 2"), std::string::npos) << moved.err;

  // Another text of the same name is refused; so is none.
  fs::create_directories(place);
  fs::rename(other / "run", place / "run");
  const Arguments again = {"train", (place / "run" / "config.toml").string(), "--set"};
  fs::remove(other / "train.arrow");
  expect_refused(run_skein(again + Arguments{"run.steps=4"}), 2,
                 {"data.train is '" + (other / "train.arrow").string() + "', which is gone",
                  (place / "run" / "train.arrow").string(), (place / "train.arrow").string(),
                  "--set data.train="});
  fs::copy(job().other_corpus(), place / "train.arrow");
  expect_refused(run_skein(again + Arguments{"run.steps=4"}), 2, {"data.train is "});
  expect_refused(
      run_skein(again + Arguments{"run.steps=4", "--set", "data.train=" + (other / "x").string()}),
      2, {"data.train: ", (other / "x").string()});
}

// A corpus that was in the run folder is missing where it is named, which is not told twice.
TEST(MovedRun, TellsWhereACorpusIsMissingOnce) {
  const fs::path run = job().run("kept"), corpus = run / "mine.arrow";
  fs::create_directories(run);
  fs::copy(job().corpus(), corpus);
  job().trained("kept", {"run.steps=2", "precision.mode=fp32", "data.train=" + corpus.string()});
  fs::remove(corpus);
  const std::string beside = (run.parent_path() / "mine.arrow").lexically_normal().string();
  const Outcome refused = run_skein({"train", run.string(), "--set", "run.steps=3"});
  expect_refused(refused, 2,
                 {corpus.lexically_normal().string() + "', which is gone, and there is no " +
                  beside + " either: expected"});
}

// A config.toml that an older version wrote names its folder as it was.
TEST(MovedRun, OfAnOlderVersionIsRefusedRatherThanBegunAnew) {
  job().copy_run("older");
  const fs::path config = job().run("older") / "config.toml";
  std::string text = read_file(config);
  const size_t at = text.find("{config_dir}\"");
  ASSERT_NE(at, std::string::npos) << text;
  text.replace(at, 12, (job().folder / "runs" / "older").string());
  std::ofstream(config) << text;
  expect_refused(run_skein({"train", config.string()}), 2,
                 {config.string(), "names another", "dir = \"{config_dir}\"", "run.dir="});
  EXPECT_FALSE(fs::exists(job().folder / "runs"));
}

}  // namespace
}  // namespace skein
