// data.objective = "masked": an encoder finds hidden tokens; the same bits over layouts and resumes
#include <gmock/gmock.h>

#include "tests/parallel_job.h"

namespace skein {
namespace {

using testing::HasSubstr;

// A job with an encoder, and a tokenizer that has a token for what is hidden.
class MaskedJob : public ParallelJob {
 public:
  MaskedJob() {
    must({"data", "tokenizer", "--kind", "byte-level", "--vocab-size", "320", "--special",
          "<|endoftext|>", "--special", "<|mask|>", "--out", masked_tokenizer().string(),
          corpus().string()});
  }
  fs::path masked_tokenizer() const { return folder / "masked_tokenizer"; }
  Overrides masked(const Overrides& more = {}) const {
    return setting(4) +
           Overrides{"model.model_type=eurobert", "data.objective=masked",
                     "data.mask_token=<|mask|>", "data.mask_probability=0.3",
                     "data.tokenizer=" + masked_tokenizer().string()} +
           more;
  }
};

const MaskedJob& job() {
  static const MaskedJob job;
  return job;
}

const Curve& expected() {
  static const Curve curve = [] {
    job().trained("one", job().masked());
    return read_curve(job().run("one"));
  }();
  return curve;
}

TEST(MaskedTraining, HasTheSameBitsForOtherWorkersAndMicroBatches) {
  const std::pair<const char*, Overrides> layouts[] = {
      {"data_ranks", {"launch.workers=2", "parallel.data=2"}},
      {"zero", {"launch.workers=2", "parallel.data=2", "parallel.zero=3"}},
      {"pipeline", {"launch.workers=2", "parallel.pipeline=2"}},
      {"whole_words_off", {"data.mask_whole_words=false"}}};
  for (const auto& [name, overrides] : layouts) {
    const Outcome outcome = job().run_for(name, job().masked(overrides));
    ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
    EXPECT_EQ(different_bits(expected(), read_curve(job().run(name))), "") << name;
  }
}

TEST(MaskedTraining, AgreesWhereSumsHaveAnotherOrder) {
  for (const char* axis : {"tensor", "context"}) {
    const Outcome outcome =
        job().run_for(axis, job().masked({"launch.workers=2", fmt::format("parallel.{}=2", axis)}));
    ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
    Closeness worst;
    EXPECT_EQ(not_close(expected(), read_curve(job().run(axis)), &worst), "") << axis;
  }
}

TEST(MaskedTraining, ResumesWithTheSameMasks) {
  job().trained("resumed", job().masked({"run.steps=2"}));
  job().trained("resumed", job().masked());
  EXPECT_EQ(different_bits(expected(), read_curve(job().run("resumed"))), "");
}

TEST(MaskedTraining, HidesWholeWords) {
  job().trained("words", job().masked({"data.mask_whole_words=true"}));
  EXPECT_NE(different_bits(expected(), read_curve(job().run("words"))), "");
}

TEST(MaskedTraining, IsExportedAsTransformersHasIt) {
  (void)expected();
  const fs::path out = job().folder / "exported";
  TinyJob::must({"checkpoint", "export", job().run("one").string(), "--out", out.string()});
  const Json config = Json::parse(read_file(out / "config.json"));
  EXPECT_EQ(config.at("architectures"), Json({"EuroBertForMaskedLM"}));
  EXPECT_EQ(config.at("mask_token_id"), 1);
  const Outcome generated =
      run_skein({"generate", "--model", out.string(), "--prompt", "the", "--device", "cpu"});
  EXPECT_NE(generated.exit_code, 0);
  EXPECT_THAT(generated.err, HasSubstr("a eurobert model finds masked tokens"));
}

TEST(MaskedTraining, RefusesWhatDoesNotFit) {
  const auto refused = [&](const Overrides& overrides) {
    const Outcome outcome = job().train("refused", job().masked(overrides));
    EXPECT_EQ(outcome.exit_code, 2) << outcome.err;
    return outcome.err;
  };
  EXPECT_THAT(refused({"model.model_type=llama"}),
              HasSubstr("data.objective is \"masked\", and llama is a decoder"));
  EXPECT_THAT(refused({"data.objective=next_token"}),
              HasSubstr("eurobert is an encoder, which would read the next token off its input: "
                        "expected \"masked\""));
  EXPECT_THAT(refused({"data.mask_token="}), HasSubstr("the tokenizer names no mask_token"));
  EXPECT_THAT(refused({"data.mask_token=<mask>"}), HasSubstr("data.mask_token is \"<mask>\""));
  EXPECT_THAT(refused({"data.loss_on=completion"}), HasSubstr("expected loss_on = \"all\""));
  EXPECT_THAT(refused({"data.mask_probability=0"}), HasSubstr("mask_probability"));
}

}  // namespace
}  // namespace skein
