#include "skein/prepare/clean/clean.h"

#include <gmock/gmock.h>

#include "skein/data/corpus/corpus_sources.h"
#include "tests/data/fasttext_testing.h"
#include "tests/data/ingest_testing.h"

namespace skein {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// Passes all rules; no two are alike.
std::string good_text(int i) {
  const std::string n = std::to_string(i);
  return "The clock in hall " + n + " began to strike, and nobody came down to look at it.\n" +
         "That winter of " + n + " the river was frozen, so we walked to the mill with a lamp.\n" +
         "Her brother asked why the letters had stopped, but she would not say a word to him.\n" +
         "People have told me since that house " + n + " was sold and that its garden is gone.\n" +
         "I remember best how the snow lay on every roof, quiet and blue until the morning.\n" +
         "Nothing else from those years has stayed so clear in my mind as lamp " + n + " did.\n";
}

std::string short_text(int i) {
  return "This note has fewer words than a document needs, though its " + std::to_string(i) +
         " or so are all different and none is said again before it ends with an odd remark.";
}

std::string json_line(const std::string& text) { return Json({{"text", text}}).dump() + "\n"; }

class Clean : public Ingest {
 protected:
  // Three files: two thirds of the documents are kept.
  void write_inputs() {
    for (int file = 0; file < 3; ++file) {
      std::string lines;
      for (int i = 0; i < 40; ++i) {
        lines += json_line(good_text(100 * file + i));
        if (i % 2 == 0) lines += json_line(short_text(i));
      }
      write(fmt::format("in/{}.jsonl", file), lines);
    }
  }

  CleanReport clean(const CleanOptions& options, int num_threads = 2) {
    IngestOptions ingestion;
    ingestion.step = cleaning_step(options);
    ingestion.overwrite = true;
    ingestion.num_threads = num_threads;
    report_ = ingest({folder_ / "in"}, out(), ingestion);
    CleanReport total;
    for (const Json& counters : report_.counters) total.add(CleanReport::from_counters(counters));
    return total;
  }
};

TEST_F(Clean, CountsWhatItDropsAndKeepsTheRest) {
  write_inputs();
  const CleanReport report = clean({});
  EXPECT_EQ(report.num_documents, 180);
  EXPECT_EQ(report.num_kept, 120);
  EXPECT_EQ(report.taken.of(Rule::kShortDoc).num_taken, 60);
  EXPECT_EQ(report.num_kept, report_.num_documents);
  EXPECT_EQ(report.num_kept_bytes, report_.num_bytes);
  EXPECT_EQ(report.examples.at("gopher_short_doc").size(), CleanReport::kNumExamples);
  // Lines are stripped, and the last one ends the text.
  const std::string expected = good_text(0);
  EXPECT_EQ(documents(out())[0], expected.substr(0, expected.size() - 1));
  const std::optional<CorpusSources> sources = CorpusSources::beside(out());
  ASSERT_TRUE(sources);
  EXPECT_EQ(sources->find(1).record, 3);
}

TEST_F(Clean, IsTheSameWhateverTheThreads) {
  write_inputs();
  const CleanReport report = clean({}, 1);
  const std::string corpus = read_file(out());
  const CleanReport again = clean({}, 3);
  EXPECT_EQ(read_file(out()), corpus);
  EXPECT_EQ(again.to_counters(), report.to_counters());
}

TEST_F(Clean, WithOtherRulesDoesNotTakeWhatWasFinished) {
  write_inputs();
  CleanOptions options;
  options.rules.set("gopher_short_doc=2");
  EXPECT_EQ(clean(options).taken.of(Rule::kShortDoc).num_taken, 0);
  IngestOptions ingestion;
  ingestion.step = cleaning_step(options);
  EXPECT_TRUE(ingest({folder_ / "in"}, out(), ingestion).was_finished);
  ingestion.step = cleaning_step({});
  EXPECT_THAT(test::error_of([&] { ingest({folder_ / "in"}, out(), ingestion); }),
              HasSubstr("exists"));
}

TEST_F(Clean, RepairsAndReplacesWhereItIsAsked) {
  write("in/a.jsonl",
        json_line(good_text(1) + "Write to the miller\u00e2\u20ac\u2122s son at "
                                 "jo@mill.org or call 212-555-1234 before the night.\n"));
  EXPECT_THAT(clean({}).num_repaired, 0);
  EXPECT_THAT(documents(out())[0], HasSubstr("jo@mill.org"));
  CleanOptions options;
  options.repairs = true;
  options.removes = {.emails = true, .ips = true, .phones = true};
  const CleanReport report = clean(options);
  EXPECT_EQ(report.num_repaired, 1);
  EXPECT_EQ(report.replaced.num_emails, 1);
  EXPECT_EQ(report.replaced.num_phones, 1);
  EXPECT_THAT(documents(out())[0],
              HasSubstr("miller\u2019s son at email@example.com or call 555-0100 before"));
}

TEST_F(Clean, AllDroppedIsAnErrorThatSaysSo) {
  write("in/a.jsonl", json_line("Short."));
  EXPECT_THAT(test::error_of([&] { clean({}); }), HasSubstr("1 empty or dropped documents"));
}

TEST_F(Clean, ReportsShowMarkupAsText) {
  write("in/a.jsonl", json_line("<script>alert(1)</script> & \x1b[31m" + short_text(1)) +
                          json_line(good_text(1)));
  const CleanReport report = clean({});
  const std::string page = to_html(report, {});
  EXPECT_THAT(page, HasSubstr("&lt;script&gt;alert(1)&lt;/script&gt; &amp; \\x1b[31m"));
  EXPECT_EQ(page.find("<script"), std::string::npos);
  EXPECT_THAT(to_text(report, {}, 1), HasSubstr("gopher_short_doc"));
  EXPECT_EQ(to_text(report, {}, 1).find('\x1b'), std::string::npos);
  const OrderedJson json = to_json(report, {});
  EXPECT_EQ(json["kept"]["documents"], 1);
}

TEST_F(Clean, KeepsTheLanguagesThatAreAskedFor) {
  const std::string german =
      "Der Fluss war gefroren und wir gingen mit einer lampe zur muehle und der fluss war kalt.";
  write("in/a.jsonl", json_line(good_text(1)) + json_line(german));
  CleanOptions options;
  options.language_model = test::train_classifier(folder_);
  for (const char* filter : {"gopher_repetition", "gopher_quality", "c4", "fineweb"}) {
    options.rules.set(std::string(filter) + "=off");
  }
  EXPECT_EQ(clean(options).taken.of(Rule::kLanguage).num_taken, 1);
  EXPECT_EQ(documents(out()).size(), 1u);
  options.languages = {"de"};
  clean(options);
  EXPECT_THAT(documents(out()), ElementsAre(german));
  options.languages = {"de", "en"};
  EXPECT_EQ(clean(options).num_kept, 2);
  options.languages = {"dee"};
  EXPECT_THAT(test::error_of([&] { clean(options); }), HasSubstr("did you mean de?"));
  options.language_model = write("no_model", "these bytes are no model");
  EXPECT_THAT(test::error_of([&] { clean(options); }), HasSubstr("no_model"));
  options.language_model = folder_ / "nothing";
  EXPECT_THAT(test::error_of([&] { clean(options); }), HasSubstr("there is no such file"));
}

}  // namespace
}  // namespace skein
