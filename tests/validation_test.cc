// Validation reads its set once, whatever the layout; before training, without training, and as
// `skein score --corpus`, it gives the same bits.
#include "tests/parallel_job.h"

namespace skein {
namespace {

constexpr int64_t kDocuments = 12;

// The corpus to validate on: 12 documents, less than three batches.
class ValidationJob : public ParallelJob {
 public:
  ValidationJob() {
    std::ofstream stream(folder / "held.jsonl");
    for (int64_t i = 0; i < kDocuments; ++i) {
      std::string text;
      for (int64_t word = 0; word < 20 + 3 * i; ++word) text += word % 3 == i % 3 ? "teo " : "nia ";
      stream << Json{{"text", text}}.dump() << "\n";
    }
    stream.close();
    must({"data", "ingest", "--out", held().string(), (folder / "held.jsonl").string()});
  }
  fs::path held() const { return folder / "held.arrow"; }

  Overrides setting(int64_t steps, const Overrides& more = {}) const {
    return ParallelJob::setting(steps) + Overrides{"data.validation=" + held().string()} + more;
  }
  std::vector<OrderedJson> validations(const std::string& name) const {
    std::vector<OrderedJson> found;
    for (const OrderedJson& event : read_json_lines(run(name) / "events.jsonl")) {
      if (event.at("event") == "validation") found.push_back(event);
    }
    return found;
  }
  Outcome validate_only(const std::string& name, const Overrides& overrides,
                        const Arguments& more = {}) const {
    Arguments words = arguments("train", name, overrides);
    words.emplace_back("--validate-only");
    words.insert(words.end(), more.begin(), more.end());
    return SkeinProcess(words).wait(kRunTimeoutS);
  }
  // The only set of `--validate-only --json`.
  OrderedJson baseline(const std::string& name, const Overrides& overrides) const {
    const Outcome outcome = validate_only(name, overrides, {"--json"});
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
    const OrderedJson json = OrderedJson::parse(outcome.out, nullptr, false);
    EXPECT_FALSE(json.is_discarded()) << outcome.out;
    EXPECT_EQ(json.at("validation").size(), 1u);
    return json.at("validation").at(0);
  }
  OrderedJson score(const fs::path& model, const Arguments& more = {}) const {
    Arguments words = {"score", "--model", model.string(), "--corpus", held().string(), "--json"};
    words.insert(words.end(), more.begin(), more.end());
    return OrderedJson::parse(must(words).out);
  }
};

const ValidationJob& job() {
  static const ValidationJob job;
  return job;
}

std::vector<std::string> files_in(const fs::path& folder) {
  std::vector<std::string> files;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    const auto time = fs::last_write_time(entry.path()).time_since_epoch().count();
    files.push_back(fmt::format("{} {}", entry.path().string(), entry.is_directory() ? 0 : time));
  }
  std::sort(files.begin(), files.end());
  return files;
}

TEST(Validation, ReadsItsSetOnceOnAnyLayout) {
  const Overrides every = job().setting(2, {"validate.every_steps=1"});
  const Outcome one = job().train("one", every);
  ASSERT_EQ(one.exit_code, 0) << one.err;
  EXPECT_NE(one.err.find("validation every step: all "), std::string::npos) << one.err;
  const auto expected = job().validations("one");
  ASSERT_EQ(expected.size(), 2u);
  // Every token but the first of each segment: as many segments as documents, and one more for
  // each that lanes cut, whose BOS comes on top.
  const OrderedJson score = job().score(job().run("one"));
  EXPECT_EQ(score.at("documents"), kDocuments);
  EXPECT_EQ(expected[1].at("tokens"), score.at("tokens"));
  const OrderedJson stats =
      OrderedJson::parse(TinyJob::must({"data", "stats", job().held().string(), "--tokenizer",
                                        job().tokenizer().string(), "--json"})
                             .out);
  const int64_t whole = stats.at("tokens");
  EXPECT_NEAR(static_cast<double>(expected[1].at("tokens")), static_cast<double>(whole), 40);
  const Overrides layouts[] = {
      {"launch.workers=2"},
      {"launch.workers=4", "parallel.pipeline=2", "parallel.zero=3"},
      {"launch.workers=4", "parallel.pipeline=2", "parallel.virtual_stages=2"}};
  for (const Overrides& layout : layouts) {
    const Outcome outcome = job().run_for("several", every + layout);
    ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
    const auto found = job().validations("several");
    ASSERT_EQ(found.size(), 2u);
    for (size_t i = 0; i < 2; ++i) {
      EXPECT_EQ(found[i].at("tokens"), expected[i].at("tokens"));
      EXPECT_EQ(found[i].at("loss").dump(), expected[i].at("loss").dump());
    }
    job().remove("several");
  }
  const Overrides once = job().setting(1);
  for (const char* axis : {"tensor", "context"}) {
    const Overrides layout = {"launch.workers=2", fmt::format("parallel.{}=2", axis)};
    const Outcome outcome = job().run_for("split", once + layout);
    ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
    const auto found = job().validations("split");
    ASSERT_EQ(found.size(), 1u);
    EXPECT_EQ(found[0].at("tokens"), expected[0].at("tokens"));
    const double loss = found[0].at("loss"), wanted = expected[0].at("loss");
    EXPECT_NEAR(loss, wanted, 1e-5 * wanted) << axis;
    job().remove("split");
  }
  // All of it likewise, and less.
  job().trained("all", every + Overrides{"validate.batches=0"});
  EXPECT_EQ(job().validations("all")[1].at("loss").dump(), expected[1].at("loss").dump());
  job().trained("less", every + Overrides{"validate.batches=1"});
  EXPECT_LT(job().validations("less")[1].at("tokens"), expected[1].at("tokens"));
}

TEST(Validation, BeforeTrainingIsStepZeroAndChangesNoStep) {
  job().trained("plain", job().setting(3));
  ASSERT_EQ(job().validations("plain").size(), 1u);
  job().trained("before", job().setting(3, {"validate.before_training=true"}));
  const auto found = job().validations("before");
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0].at("step"), 0);
  EXPECT_EQ(found[1].at("step"), 3);
  EXPECT_EQ(found[1].at("loss").dump(), job().validations("plain")[0].at("loss").dump());
  EXPECT_EQ(different_bits(read_curve(job().run("plain")), read_curve(job().run("before"))), "");
  const OrderedJson report =
      OrderedJson::parse(TinyJob::must({"report", job().run("before").string(), "--json"}).out);
  EXPECT_EQ(report.at("validation").at(0).at("step"), 0);
  // A run that goes on has no such step.
  job().trained("before", job().setting(4, {"validate.before_training=true"}));
  EXPECT_EQ(job().validations("before").size(), 3u);
}

TEST(Validation, AloneGivesTheBaselineAndMakesNothing) {
  const Overrides setting = job().setting(3, {"validate.before_training=true"});
  const OrderedJson random = job().baseline("fresh", setting);
  EXPECT_FALSE(fs::exists(job().run("fresh")));
  // Nothing of the one step for which it is set up.
  const Overrides decays = {"run.steps=60", "optimizer.schedule=cosine"};
  const Outcome quiet = job().validate_only("fresh", setting + decays);
  EXPECT_EQ(quiet.err.find("run.steps"), std::string::npos) << quiet.err;
  EXPECT_EQ(quiet.err.find("no effect"), std::string::npos) << quiet.err;
  job().trained("fresh", setting);
  const auto recorded = job().validations("fresh");
  ASSERT_EQ(recorded.size(), 2u);
  EXPECT_EQ(random.at("loss").dump(), recorded[0].at("loss").dump());
  EXPECT_EQ(random.at("tokens"), recorded[0].at("tokens"));
  EXPECT_EQ(random.at("all"), true);
  // Of a run that has begun: its newest checkpoint.
  const auto files = files_in(job().run("fresh"));
  EXPECT_EQ(job().baseline("fresh", setting).at("loss").dump(), recorded[1].at("loss").dump());
  EXPECT_EQ(job().baseline("fresh", setting + Overrides{"launch.workers=2"}).at("loss").dump(),
            recorded[1].at("loss").dump());
  EXPECT_EQ(files_in(job().run("fresh")), files);
  // Of the weights that another run begins with.
  const Overrides from = {"model.init_from=" + job().run("fresh").string()};
  EXPECT_EQ(job().baseline("other", setting + from).at("loss").dump(),
            recorded[1].at("loss").dump());
  EXPECT_FALSE(fs::exists(job().run("other")));
  const Outcome text = job().validate_only("other", setting + from);
  EXPECT_EQ(text.exit_code, 0) << text.err;
  EXPECT_NE(text.out.find("validation loss "), std::string::npos) << text.out;
  EXPECT_NE(text.out.find(", perplexity "), std::string::npos) << text.out;
}

// A batch that is changed where a run continues leaves the validation as it is, so that losses
// before and after can be compared.
TEST(Validation, CountsTheSameTokensInBatchesOfAnySize) {
  const auto batch_of = [](int64_t sequences, int64_t steps) {
    return job().setting(steps, {"validate.batches=1", "parallel.reduction_width=2",
                                 fmt::format("batch.global_sequences={}", sequences)});
  };
  job().trained("batches", batch_of(4, 1));
  const OrderedJson four = job().baseline("batches", batch_of(4, 1));
  EXPECT_EQ(four.at("all"), false);
  const Outcome text = job().validate_only("batches", batch_of(4, 1));
  EXPECT_NE(text.out.find("over the first "), std::string::npos) << text.out;
  EXPECT_NE(text.out.find("--set validate.batches=0 validates on all"), std::string::npos);
  const std::pair<int64_t, int64_t> more[] = {{8, 1}, {2, 2}, {6, 1}};  // rows, batches
  for (const auto& [sequences, batches] : more) {
    const OrderedJson found = job().baseline("batches", batch_of(sequences, 1));
    EXPECT_EQ(found.at("tokens"), four.at("tokens")) << sequences;
    EXPECT_EQ(found.at("loss").dump(), four.at("loss").dump()) << sequences;
    EXPECT_EQ(found.at("batches"), batches) << sequences;
    EXPECT_NE(job().baseline("not_begun", batch_of(sequences, 1)).at("tokens"), four.at("tokens"));
  }
  job().trained("batches", batch_of(8, 2));
  job().trained("batches", batch_of(6, 3) + Overrides{"launch.workers=2"});
  const auto recorded = job().validations("batches");
  ASSERT_EQ(recorded.size(), 3u);
  for (const OrderedJson& validation : recorded) {
    EXPECT_EQ(validation.at("tokens"), four.at("tokens"));
  }
}

TEST(Validation, AloneNeedsASetAndOneMachine) {
  expect_refused(job().validate_only("nothing", ParallelJob::setting(3)), 2,
                 {"--validate-only", "[data] validation is empty"});
  expect_refused(job().validate_only("nothing", job().setting(3, {"launch.nodes=2"})), 2,
                 {"--validate-only", "one machine", "launch.nodes is \"2\""});
  EXPECT_FALSE(fs::exists(job().run("nothing")));
  const Outcome alone =
      run_skein(job().arguments("train", "nothing", job().setting(3)) + Arguments{"--json"});
  EXPECT_EQ(alone.exit_code, 2);
  EXPECT_FALSE(fs::exists(job().run("nothing")));
}

TEST(Score, OfACorpusHasTheBitsOfItsValidation) {
  for (const std::string precision : {"fp32", "bf16-sr"}) {
    const std::string name = "scored_" + precision;
    job().trained(name, job().setting(2, {"precision.mode=" + precision}));
    const auto recorded = job().validations(name);
    ASSERT_EQ(recorded.size(), 1u);
    const OrderedJson score = job().score(job().run(name));
    EXPECT_EQ(score.at("loss").dump(), recorded[0].at("loss").dump()) << precision;
    EXPECT_EQ(score.at("tokens"), recorded[0].at("tokens"));
    EXPECT_EQ(score.at("precision"), precision == "fp32" ? "fp32" : "bf16");
    const double loss = score.at("loss"), tokens = score.at("tokens"), bytes = score.at("bytes");
    EXPECT_NEAR(score.at("bits_per_byte"), loss * tokens / std::log(2.0) / bytes, 1e-6);
    EXPECT_NEAR(score.at("perplexity"), std::exp(loss), 1e-4 * std::exp(loss));
    // Its export, in rows of its own: the same text, cut elsewhere.
    const fs::path hf = job().folder / ("hf_" + precision);
    TinyJob::must({"checkpoint", "export", job().run(name).string(), "--out", hf.string()});
    const OrderedJson exported = job().score(hf);
    EXPECT_EQ(exported.at("precision"), score.at("precision"));
    EXPECT_EQ(exported.at("documents"), kDocuments);
    EXPECT_EQ(exported.at("sequence_length"), 256);
    EXPECT_NEAR(exported.at("loss"), loss, 0.05 * loss);
    EXPECT_EQ(job().score(hf, {"--sequence-length", "32"}).at("sequence_length"), 32);
  }
  expect_refused(run_skein({"score", "--model", job().run("scored_fp32").string()}), 2,
                 {"--tokens or --corpus"});
  expect_refused(run_skein({"score", "--model", job().run("scored_fp32").string(), "--corpus",
                            (job().folder / "none.arrow").string()}),
                 2, {"--corpus", "none.arrow"});
}

// A configuration without data.tokenizer.
TEST(InitFrom, GivesTheTokenizerToo) {
  job().trained("source", job().setting(1));
  TinyJob::must({"checkpoint", "export", job().run("source").string(), "--out",
                 (job().folder / "hf_source").string()});
  const fs::path config = job().folder / "continued.toml";
  const auto train = [&](const std::string& from, const std::string& name,
                         const Overrides& more = {}) {
    std::ofstream(config) << "[run]\nsteps = 2\n[model]\ninit_from = \"" << from
                          << "\"\n[data]\ntrain = \"" << job().corpus().string()
                          << "\"\nsequence_length = 32\n[batch]\nglobal_sequences = 2\n"
                          << "[precision]\nmode = \"fp32\"\n[log]\ntensorboard = false\n";
    Arguments words = {"train", config.string(), "--set", "run.dir=" + job().run(name).string()};
    for (const std::string& text : more) words.insert(words.end(), {"--set", text});
    return run_skein(words);
  };
  for (const std::string& from :
       {job().run("source").string(), job().checkpoint("source", 1).string(),
        (job().folder / "hf_source").string()}) {
    const Outcome outcome = train(from, "continued", {"launch.workers=2"});
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
    EXPECT_NE(outcome.err.find("data.tokenizer is not set: taking that of model.init_from, "),
              std::string::npos)
        << outcome.err;
    EXPECT_TRUE(fs::exists(job().run("continued") / "tokenizer"));
    // From the run folder alone, and by the same configuration with its source gone.
    TinyJob::must({"train", job().run("continued").string(), "--set", "run.steps=3"});
    const Outcome on = train("/nowhere", "continued", {"run.steps=4"});
    EXPECT_EQ(on.exit_code, 0) << on.err;
    job().remove("continued");
  }
  fs::remove(job().folder / "hf_source" / "tokenizer.model");
  fs::remove(job().folder / "hf_source" / "tokenizer.json");
  expect_refused(train((job().folder / "hf_source").string(), "refused"), 2,
                 {"data.tokenizer is not set", "has none"});
  expect_refused(train("", "refused"), 2, {"tokenizer is missing", "init_from"});
  EXPECT_FALSE(fs::exists(job().run("refused")));
}

}  // namespace
}  // namespace skein
