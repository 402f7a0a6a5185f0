#include "skein/prepare/dedup/dedup.h"

#include <algorithm>
#include <random>
#include <set>

#include "skein/data/corpus/corpus_sources.h"
#include "skein/prepare/ingest_shards.h"
#include "tests/data/dedup_testing.h"

namespace skein {
namespace {

std::set<std::string> ngrams_of(const std::string& text, size_t n) {
  std::vector<std::string> words;
  WordHasher().for_each_word(text, [&](std::string_view word) { words.emplace_back(word); });
  std::set<std::string> ngrams;
  for (size_t i = 0; i + n <= words.size(); ++i) {
    ngrams.insert(joined({words.begin() + static_cast<ptrdiff_t>(i),
                          words.begin() + static_cast<ptrdiff_t>(i + n)}));
  }
  return ngrams;
}

TEST_F(DedupTest, TellsWhereWhatStaysCameFrom) {
  const fs::path a = write_documents("a.jsonl", {"one two three", "four five six", "seven"});
  const fs::path b = write_documents("b.jsonl", {"four five six", "eight", "eight", "nine"});
  EXPECT_EQ(deduped({a, b}),
            (Documents{"one two three", "four five six", "seven", "eight", "nine"}));
  const std::optional<CorpusSources> sources = CorpusSources::beside(out());
  ASSERT_TRUE(sources);
  Documents found;
  for (int64_t i = 0; i < sources->num_documents(); ++i) {
    const SourceRecord source = sources->find(i);
    found.push_back(fmt::format("{}:{}", fs::path(source.path).filename().string(), source.record));
  }
  EXPECT_EQ(found, (Documents{"a.jsonl:1", "a.jsonl:2", "a.jsonl:3", "b.jsonl:2", "b.jsonl:4"}));
}

TEST_F(DedupTest, KeepsOneOfEqualTexts) {
  const fs::path file = write_documents("a.jsonl", {"b", "a", "b", "B!", "", "a", "?"});
  DedupOptions options;
  options.removes_near = false;
  EXPECT_EQ(deduped({file}, options), (Documents{"b", "a", "B!", "?"}));
  EXPECT_EQ(report_.equal.num_documents, 2);
  EXPECT_FALSE(fs::exists(work_folder_of(out())));
  EXPECT_EQ(report_.inputs.num_documents_read, 7);
  EXPECT_EQ(report_.inputs.num_documents, 6);
  options.equality = Equality::kWords;  // "B!" is the longer text of the same words
  EXPECT_EQ(deduped({file}, options), (Documents{"a", "B!", "?"}));
  EXPECT_EQ(report_.equal.num_documents, 3);
  EXPECT_EQ(report_.kept.num_bytes, 4);
}

TEST_F(DedupTest, KeepsTheLongestOfNearDuplicates) {
  std::mt19937_64 random(1);
  const std::string text = joined(random_words(random, 200));
  const std::string longer = text + " and more";
  const std::string other = joined(random_words(random, 200));
  EXPECT_EQ(
      deduped({write_documents("a.jsonl", {text, other, "short", longer, text + " or", "Short."})}),
      (Documents{other, longer, "Short."}));
  EXPECT_EQ(report_.near.num_documents, 3);
  EXPECT_EQ(report_.num_clusters, 2);
  ASSERT_EQ(report_.largest.size(), 2u);
  EXPECT_EQ(report_.largest[0].num_documents, 3);
  EXPECT_EQ(report_.largest[0].excerpt, longer.substr(0, 400));
}

// The same texts stay whatever the order, the files and the threads; the output has the order of
// the inputs.
TEST_F(DedupTest, DependsOnTheDocumentsAlone) {
  Documents documents = made_documents(2, 300);
  DedupOptions options;
  options.num_threads = 1;
  options.passage = Passage::kLine;
  const Documents wanted = deduped({write_documents("all.jsonl", documents)}, options);
  EXPECT_GT(report_.near.num_documents, 100);
  EXPECT_GT(report_.equal.num_documents, 50);
  const Texts texts(wanted.begin(), wanted.end());
  const std::string bytes = read_file(out());
  for (const int num_threads : {2, 8}) {
    options.num_threads = num_threads;
    deduped({folder_ / "all.jsonl"}, options);
    EXPECT_EQ(read_file(out()), bytes);
  }

  std::vector<fs::path> files;
  for (size_t i = 0; i < 8; ++i) {
    const auto at = [&](size_t k) {
      return documents.begin() + static_cast<ptrdiff_t>(documents.size() * k / 8);
    };
    files.push_back(write_documents(fmt::format("{}.jsonl", i), {at(i), at(i + 1)}));
  }
  EXPECT_EQ(deduped(files, options), wanted);
  std::mt19937_64 random(3);
  for (int round = 0; round < 3; ++round) {
    std::shuffle(files.begin(), files.end(), random);
    const Documents found = deduped(files, options);
    EXPECT_EQ(Texts(found.begin(), found.end()), texts);
    std::shuffle(documents.begin(), documents.end(), random);
    const Documents shuffled = deduped({write_documents("shuffled.jsonl", documents)}, options);
    EXPECT_EQ(Texts(shuffled.begin(), shuffled.end()), texts);
  }
}

// The shards are the one corpus in parts, wherever files and threads begin and end.
TEST_F(DedupTest, WritesShards) {
  const Documents documents = made_documents(6, 60);
  DedupOptions options;
  options.passage = Passage::kLine;
  const fs::path file = write_documents("all.jsonl", documents);
  const Documents wanted = deduped({file}, options);
  const int64_t num_bytes = report_.kept.num_bytes;
  const fs::path folder = folder_ / "shards/";
  std::vector<size_t> sizes;
  for (const int num_threads : {1, 4}) {
    options.num_shards = 5;
    options.num_threads = num_threads;
    options.overwrite = true;
    const DedupReport report = dedup({file}, folder, options);
    EXPECT_EQ(report.kept.num_bytes, num_bytes);
    Documents found;
    std::vector<size_t> now;
    for (int64_t shard = 0; shard < 5; ++shard) {
      const Documents part = DedupTest::documents(shard_path(folder, shard, 5));
      found.insert(found.end(), part.begin(), part.end());
      now.push_back(part.size());
    }
    EXPECT_EQ(found, wanted);
    EXPECT_TRUE(sizes.empty() || sizes == now);
    sizes = now;
    EXPECT_LT(*std::max_element(sizes.begin(), sizes.end()), wanted.size() / 3);
  }
  options.overwrite = false;
  EXPECT_TRUE(dedup({file}, folder, options).was_finished);
  fs::remove(shard_path(folder, 3, 5));  // is made again, and nothing else
  EXPECT_FALSE(dedup({file}, folder, options).was_finished);
  EXPECT_EQ(DedupTest::documents(shard_path(folder, 3, 5)).size(), sizes[3]);
  EXPECT_FALSE(fs::exists(folder_ / "shards.work"));
  const fs::path others = folder_ / "others";  // a replacement that ended in the middle
  options.passage = Passage::kNone;
  dedup({file}, others, options);
  fs::copy_file(shard_path(others, 2, 5), shard_path(folder, 2, 5),
                fs::copy_options::overwrite_existing);
  EXPECT_NE(test::error_of([&] { Corpus{folder}; }).find("made with other options"),
            std::string::npos);
  options.num_shards = 1000;
  EXPECT_NE(test::error_of([&] {
              dedup({file}, folder_ / "more", options);
            }).find("documents are left: expected at most as many shards"),
            std::string::npos);
}

// Against exact Jaccard of all pairs: what was removed is alike, what stayed is not.
TEST_F(DedupTest, RemovesWhatIsAlikeByExactJaccard) {
  const Documents documents = made_documents(5, 120);
  const Documents kept = deduped({write_documents("all.jsonl", documents)});
  std::vector<std::set<std::string>> sets;
  for (const std::string& text : documents) sets.push_back(ngrams_of(text, 5));
  const std::set<std::string> stays(kept.begin(), kept.end());
  const auto jaccard = [&](size_t a, size_t b) {
    const auto common =
        static_cast<double>(std::count_if(sets[a].begin(), sets[a].end(), [&](const auto& ngram) {
          return sets[b].contains(ngram);
        }));
    return common / (static_cast<double>(sets[a].size() + sets[b].size()) - common);
  };
  double expected_missed = 0, missed = 0;
  for (size_t a = 0; a < documents.size(); ++a) {
    double most = 0;
    for (size_t b = 0; b < documents.size(); ++b) {
      if (a == b || documents[a] == documents[b]) continue;
      const double similarity = jaccard(a, b);
      most = std::max(most, similarity);
      if (b < a) continue;
      expected_missed += similarity > 0 ? 1 - meeting_probability({}, similarity) : 0;
      missed += similarity > 0 && stays.contains(documents[a]) && stays.contains(documents[b]);
    }
    if (!stays.contains(documents[a])) {
      EXPECT_GT(most, 0.3) << documents[a].substr(0, 80);
    }
  }
  EXPECT_LE(missed, expected_missed);  // less, for pairs are joined through others, too
  EXPECT_GT(missed, 0);                // or the test would show nothing
}

TEST_F(DedupTest, CutsRepeatedLinesFromAllButOneDocument) {
  DedupOptions options;
  options.removes_near = false;
  options.passage = Passage::kLine;
  const Documents documents{"Cookie policy\none\n\ntwo\n", "cookie  POLICY!\nthree\n",
                            "four\n----\nfour\nCookie policy", "Cookie policy\n...\n"};
  const auto kept_in = [](const Documents& found) {
    std::string all;
    for (const std::string& text : found) all += text + "|";
    return all;
  };
  const Documents found = deduped({write_documents("a.jsonl", documents)}, options);
  const std::string all = kept_in(found);
  int64_t num_headings = 0;
  for (const std::string& text : found) {
    for (const char* heading : {"Cookie policy", "cookie  POLICY"}) {
      num_headings += text.find(heading) != std::string::npos ? 1 : 0;
    }
  }
  EXPECT_EQ(num_headings, 1);
  EXPECT_NE(all.find("one\n\ntwo\n"), std::string::npos) << all;
  EXPECT_NE(all.find("four\n----\nfour\n"), std::string::npos) << all;
  EXPECT_EQ(report_.num_repeated_passages, 1);
  EXPECT_EQ(report_.num_cut_passages, 3);
  options.max_documents_of_passage = 4;
  EXPECT_EQ(deduped({folder_ / "a.jsonl"}, options), documents);

  options = {};
  options.removes_near = false;
  options.passage = Passage::kParagraph;
  const Documents two = deduped(
      {write_documents("b.jsonl", {"a\nb\n\n\nc\n", "x\n\na\nb\n\n", "y\n\na\nc\n\nz"})}, options);
  EXPECT_EQ(report_.num_cut_passages, 1);
  EXPECT_TRUE(two[0] == "c\n" || two[1] == "x\n\n") << two[0] << two[1];
  EXPECT_EQ(two[2], "y\n\na\nc\n\nz");
}

TEST_F(DedupTest, DropsDocumentsThatShareThirteenWordsWithAnEvaluationSet) {
  std::mt19937_64 random(7);
  const auto question = random_words(random, 20), before = random_words(random, 30);
  const auto part = [&](ptrdiff_t begin, ptrdiff_t end) {
    return joined(before) + "; " + joined({question.begin() + begin, question.begin() + end}) + "?";
  };
  const Documents documents{part(0, 12), part(3, 16), part(8, 20), joined(before), part(7, 20)};
  DedupOptions options;
  options.removes_near = false;
  options.against = {write_documents("eval.jsonl", {joined(question), "too short"}),
                     write_documents("other.jsonl", {joined(random_words(random, 40))})};
  EXPECT_EQ(deduped({write_documents("a.jsonl", documents)}, options),
            (Documents{documents[0], documents[2], documents[3]}));
  EXPECT_NE(test::error_of([&] {
              dedup({folder_ / "a.jsonl"}, options.against[1], options);
            }).find("other.jsonl: an input, and what is to be written as well"),
            std::string::npos);
  const std::string broken = read_file(options.against[0]) + "broken\n";
  write_file_atomic(options.against[0], broken);
  EXPECT_NE(test::error_of([&] {
              deduped({folder_ / "a.jsonl"}, options);
            }).find("--skip-invalid-lines passes over such lines"),
            std::string::npos);
  options.skip_invalid_lines = true;
  EXPECT_EQ(deduped({folder_ / "a.jsonl"}, options).size(), 3u);
  EXPECT_EQ(report_.sets[0].num_invalid_lines, 1);
  EXPECT_EQ(report_.contaminated.num_documents, 2);
  EXPECT_EQ(report_.contaminated_by_set, (std::vector<int64_t>{2, 0}));
  EXPECT_EQ(report_.sets[0].num_short_examples, 1);
}

TEST_F(DedupTest, TellsWhatIsWrong) {
  const fs::path file = write_documents("a.jsonl", {"a"});
  DedupOptions options;
  const auto error = [&](const std::vector<fs::path>& inputs) {
    return test::error_of([&] { dedup(inputs, out(), options); });
  };
  EXPECT_NE(error({}).find("nothing to read"), std::string::npos);
  EXPECT_NE(error({folder_ / "none.jsonl"}).find("none.jsonl"), std::string::npos);
  EXPECT_NE(error({write("bad.jsonl", "{\"text\": 1}\n")}).find("bad.jsonl:1"), std::string::npos);
  EXPECT_NE(error({write("empty.jsonl", "{\"text\": \"\"}\n")}).find("no text"), std::string::npos);
  EXPECT_FALSE(fs::exists(out()));
  write("out.arrow", "mine");
  EXPECT_NE(error({file}).find("--overwrite"), std::string::npos);
  EXPECT_EQ(read_file(out()), "mine");
  options.overwrite = true;
  options.memory_bytes = 1 << 20;
  EXPECT_NE(error({file}).find("256MiB"), std::string::npos);
  EXPECT_NE(test::error_of([] {
              check_cluster_memory(100'000'000, int64_t{1} << 30);
            }).find("--memory 1550MiB at least"),
            std::string::npos);
  EXPECT_NE(test::error_of([] {
              check_cluster_memory(INT64_C(0xffffffff), int64_t{1} << 40);
            }).find("one deduplication takes 4294967294 at most"),
            std::string::npos);
}

}  // namespace
}  // namespace skein
