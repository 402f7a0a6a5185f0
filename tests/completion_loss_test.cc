// data.loss_on = "completion": conversations to a trained model, the same bits over layouts.
#include <gmock/gmock.h>

#include "skein/data/corpus/corpus.h"
#include "skein/data/corpus/corpus_writer.h"
#include "tests/error_of.h"
#include "tests/parallel_job.h"

namespace skein {
namespace {

using testing::HasSubstr;

// A job whose corpus is of conversations of random words.
class ChatJob : public ParallelJob {
 public:
  ChatJob() {
    std::ofstream lines(folder / "chat.jsonl");
    uint64_t state = 11;
    const auto words = [&](int most) {
      std::string text = "so";
      for (uint64_t i = (state >> 33) % static_cast<uint64_t>(most); i > 0; --i) {
        state = state * 6364136223846793005U + 1442695040888963407U;
        text +=
            " " + std::string(1 + (state >> 60) % 5, static_cast<char>('a' + (state >> 40) % 26));
      }
      return text;
    };
    for (int i = 0; i < 600; ++i) {
      state = state * 6364136223846793005U + 1442695040888963407U;
      lines << fmt::format("{{\"prompt\": \"{}\", \"completion\": \"{}\"}}\n", words(60),
                           words(20));
    }
    lines.close();
    must({"data", "ingest", "--chat-template", "default", "--out", chat().string(),
          (folder / "chat.jsonl").string()});
  }
  fs::path chat() const { return folder / "chat.arrow"; }
  Overrides completion(const Overrides& more = {}) const {
    return setting(4) + Overrides{"data.train=" + chat().string(), "data.loss_on=completion"} +
           more;
  }
};

const ChatJob& job() {
  static const ChatJob job;
  return job;
}

TEST(CompletionLoss, TheSameBitsForOtherWorkersAndMicroBatches) {
  job().trained("one", job().completion());
  const Curve expected = read_curve(job().run("one"));
  const std::pair<const char*, Overrides> layouts[] = {
      {"data_ranks", {"launch.workers=2", "parallel.data=2"}},
      {"zero", {"launch.workers=2", "parallel.data=2", "parallel.zero=3"}},
      {"pipeline", {"launch.workers=2", "parallel.pipeline=2"}}};
  for (const auto& [name, overrides] : layouts) {
    const Outcome outcome = job().run_for(name, job().completion(overrides));
    ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
    EXPECT_EQ(different_bits(expected, read_curve(job().run(name))), "") << name;
    job().remove(name);
  }
  // It is another loss than that of all tokens, over fewer of them.
  job().trained("all", ParallelJob::setting(4) + Overrides{"data.train=" + job().chat().string()});
  const auto last = [&](const char* run) {
    return read_json_lines(job().run(run) / "metrics.jsonl").back();
  };
  EXPECT_LT(last("one").at("tokens").get<int64_t>() * 2, last("all").at("tokens").get<int64_t>());
  EXPECT_NE(last("one").at("loss"), last("all").at("loss"));
}

TEST(CompletionLoss, SampleShowsWhatHasNoLabel) {
  const Outcome outcome =
      TinyJob::must(Arguments{"data"} + job().arguments("sample", "sampled", job().completion()) +
                    Arguments{"--step", "1", "--json"});
  const Json row = Json::parse(outcome.out).at("rows").at(0);
  int64_t masked = 0, counted = 0;
  for (size_t i = 0; i + 1 < row.at("labels").size(); ++i) {
    const auto label = row["labels"][i].get<int64_t>();
    label < 0 ? ++masked : ++counted;
    if (label >= 0) {
      EXPECT_EQ(label, row["tokens"][i + 1].get<int64_t>());
    }
  }
  EXPECT_GT(masked, 0);
  EXPECT_GT(counted + masked, 30);
}

TEST(CompletionLoss, ACorpusWithoutSpansIsRefusedByName) {
  const Outcome outcome =
      SkeinProcess(job().arguments("train", "refused",
                                   ParallelJob::setting(4) + Overrides{"data.loss_on=completion"}))
          .wait();
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_THAT(outcome.err, HasSubstr("the corpus does not say which bytes are completions"));
  EXPECT_FALSE(fs::exists(job().run("refused") / "checkpoints"));
}

TEST(CompletionLoss, AResumedRunKeepsIt) {
  job().trained("kept", job().completion({"run.steps=2"}));
  const Outcome other =
      SkeinProcess(job().arguments("train", "kept", job().completion({"data.loss_on=all"}))).wait();
  EXPECT_EQ(other.exit_code, 2);
  EXPECT_THAT(other.err, HasSubstr("data.loss_on"));
  job().trained("kept", job().completion({"run.steps=3"}));

  // The same text with other completions is another corpus.
  const fs::path other_spans = job().folder / "other_spans.arrow";
  {
    const Corpus chat(job().chat());
    CorpusWriter writer(other_spans, "", true);
    for (int64_t i = 0; i < chat.num_documents(); ++i) {
      std::vector<ByteRange> spans = chat.loss_spans(i);
      if (i == 17) spans.front().begin += 1;
      writer.append(chat.document(i).str(), spans);
    }
    writer.commit();
  }
  const Outcome changed =
      SkeinProcess(
          job().arguments("train", "kept",
                          job().completion({"run.steps=4", "data.train=" + other_spans.string()})))
          .wait();
  EXPECT_EQ(changed.exit_code, 2);
  EXPECT_THAT(changed.err, HasSubstr("data.train is"));
  EXPECT_THAT(changed.err, HasSubstr("loss_spans"));

  // A run that never set it has a loss on all tokens.
  const Overrides corpus = {"data.train=" + job().chat().string()};
  job().trained("never", ParallelJob::setting(2) + corpus);
  const Outcome set =
      SkeinProcess(job().arguments("train", "never", job().completion({"run.steps=3"}))).wait();
  EXPECT_EQ(set.exit_code, 2);
  EXPECT_THAT(set.err, HasSubstr("data.loss_on"));
}

}  // namespace
}  // namespace skein
