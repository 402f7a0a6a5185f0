// What `skein data ingest`, `clean` and `dedup` say and leave, from outside.
#include <gmock/gmock.h>
#include <sys/stat.h>

#include <chrono>
#include <thread>

#include "skein/data/corpus/corpus.h"
#include "tests/places.h"
#include "tests/testing.h"

namespace skein {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

class DataCommands : public testing::Test {
 protected:
  std::string path(const std::string& name) const { return (folder_ / name).string(); }
  void write(const std::string& name, const std::string& text) const {
    write_file_atomic(path(name), text);
  }
  // Lines of JSON, every second of which is no document.
  std::string bad_lines() const {
    std::string lines;
    for (int i = 0; i < 150; ++i) lines += fmt::format("bad\n{{\"text\": \"number {}\"}}\n", i);
    return lines;
  }
  TempFolder folder_;
};

TEST_F(DataCommands, AReportThatCannotBeWrittenIsRefusedBeforeTheWork) {
  write("a.jsonl", "{\"text\": \"text\"}\n");
  const Arguments clean = {"data",  "clean",  "--set", "gopher_quality=off", "--set", "fineweb=off",
                           "--set", "c4=off", "--out", path("c.arrow")};
  const auto with_report = [&](const std::string& page) {
    Arguments arguments = clean;
    arguments.insert(arguments.end(), {"--report", page, path("a.jsonl")});
    return run_skein(arguments);
  };
  const Outcome refused = with_report(path("nowhere/x.html"));
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_THAT(refused.err, HasSubstr("nowhere is no folder that can be written to"));
  EXPECT_FALSE(fs::exists(path("c.arrow")));
  EXPECT_EQ(with_report(path("x.html")).exit_code, 0);
  EXPECT_THAT(read_file(path("x.html")), HasSubstr("<html"));
  EXPECT_EQ(with_report(path("x.html")).exit_code, 0);  // it is there
  const Outcome missing = with_report(path("y.html"));
  EXPECT_EQ(missing.exit_code, 2);
  EXPECT_THAT(missing.err, AllOf(HasSubstr("y.html: is not written"), HasSubstr("--overwrite")));
}

// What is asked for by name may still be something else's.
TEST_F(DataCommands, ReportsReplaceNothingButReports) {
  write("a.jsonl", "{\"text\": \"text\"}\n");
  write("hand.toml", "[model]\n");
  for (const std::string& name : {path("a.jsonl"), path("hand.toml")}) {
    const std::string before = read_file(name);
    for (const Arguments& arguments :
         {Arguments{"data", "clean", "--out", path("c.arrow"), "--report", name, path("a.jsonl")},
          Arguments{"plan", std::string(kSourceFolder) + "/configs/llama2-7b-trn1-4096.toml",
                    "--calibrate", name},
          Arguments{"plan", std::string(kSourceFolder) + "/configs/llama2-7b-trn1-4096.toml",
                    "--timeline", name}}) {
      const Outcome refused = run_skein(arguments);
      EXPECT_EQ(refused.exit_code, 2);
      EXPECT_THAT(refused.err, HasSubstr("exists, and is not what an earlier one wrote"));
      EXPECT_EQ(read_file(name), before);
    }
  }
}

TEST_F(DataCommands, OptionsThatWouldDoNothingAreRefused) {
  write("a.jsonl", "{\"text\": \"text\"}\n");
  for (const auto& [option, value, wanted] :
       {std::tuple("--against-column", "q", "--against"),
        {"--against-words", "3", "--against"},
        {"--passage-documents", "3", "--passages"},
        {"--max-invalid-lines", "0.1", "--skip-invalid-lines"}}) {
    const Outcome refused =
        run_skein({"data", "dedup", "--out", path("c.arrow"), option, value, path("a.jsonl")});
    EXPECT_EQ(refused.exit_code, 2);
    EXPECT_THAT(refused.err, HasSubstr(fmt::format("{} requires {}", option, wanted)));
  }
}

TEST_F(DataCommands, AStopSaysThatTheSameCommandGoesOn) {
  ASSERT_EQ(::mkfifo(path("waits.txt").c_str(), 0600), 0);
  for (const char* command : {"ingest", "clean", "dedup"}) {
    const std::string out = path(fmt::format("{}.arrow", command));
    SkeinProcess process({"data", command, "--out", out, path("waits.txt")});
    ASSERT_TRUE(wait_until([&] { return fs::exists(out + ".work"); }));
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    process.send(SIGINT);
    EXPECT_THAT(process.wait().err, HasSubstr("stopped; finished work is kept")) << command;
  }
}

TEST_F(DataCommands, CleanShowsItsReportWhereNothingStays) {
  write("a.jsonl", "{\"text\": \"short\"}\n");
  write("b.jsonl", "{\"text\": \"shorter\"}\n");
  const Outcome one = run_skein(
      {"data", "clean", "--out", path("c.arrow"), "--report", path("x.html"), path("a.jsonl")});
  EXPECT_EQ(one.exit_code, 1);
  EXPECT_THAT(one.out, HasSubstr("gopher_short_doc"));
  EXPECT_THAT(one.err, AllOf(HasSubstr("1 empty or dropped documents): expected some that stay"),
                             Not(HasSubstr(".csv"))));
  EXPECT_TRUE(fs::exists(path("x.html")));
  const auto machine = [&](int i) {
    return run_skein({"data", "clean", "--out", path("shards"), "--shards", "2", "--shard-index",
                      fmt::format("{}/2", i), "--report", path("p.html"), path("a.jsonl"),
                      path("b.jsonl")});
  };
  const Outcome shard = machine(1);
  EXPECT_EQ(shard.exit_code, 0);
  EXPECT_THAT(shard.err, HasSubstr("an empty shard, which is a corpus all the same"));
  EXPECT_TRUE(fs::exists(path("p-00001-of-00002.html")));
  EXPECT_FALSE(fs::exists(path("p.html")));
}

TEST_F(DataCommands, DedupCountsInvalidLinesAsIngestDoes) {
  write("a.jsonl", bad_lines());
  for (const char* command : {"ingest", "dedup"}) {
    const Arguments arguments = {"data",
                                 command,
                                 "--skip-invalid-lines",
                                 "--out",
                                 path(fmt::format("{}.arrow", command)),
                                 path("a.jsonl")};
    const Outcome refused = run_skein(arguments);
    EXPECT_EQ(refused.exit_code, 1) << command;
    EXPECT_THAT(refused.err, HasSubstr("150 of 300 lines are not valid"));
    Arguments more = arguments;
    more.insert(more.end(), {"--max-invalid-lines", "0.5", "--invalid-utf8", "replace",
                             "--max-expansion", "10"});
    EXPECT_EQ(run_skein(more).exit_code, 0) << command;
  }
}

TEST_F(DataCommands, AJobArrayIsTheWholeCommand) {
  const auto printed = [&](const Arguments& more) {
    Arguments arguments = {"data", "clean", "--out", "o", "--slurm", "in"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return run_skein(arguments).out;
  };
  EXPECT_THAT(printed({"--shards", "5000"}),
              AllOf(HasSubstr("--array=0-999\n"), HasSubstr("--shards 5000"),
                    HasSubstr("$SLURM_ARRAY_TASK_ID/1000\" --threads \"${SLURM_CPUS_ON_NODE:-1}")));
  EXPECT_THAT(
      printed({"--shards", "8", "--machines", "3", "--threads", "2", "--json", "--examples", "4",
               "--report", "r.html", "--max-invalid-lines", "0.2", "--skip-invalid-lines"}),
      AllOf(HasSubstr("--array=0-2\n"), HasSubstr("$SLURM_ARRAY_TASK_ID/3\" --threads 2\n"),
            HasSubstr("--json"), HasSubstr("--examples 4"), HasSubstr("--report r.html"),
            HasSubstr("--skip-invalid-lines --max-invalid-lines 0.2")));
  EXPECT_THAT(
      run_skein({"data", "ingest", "--out", "o", "--shards", "2", "--machines", "2", "in"}).err,
      HasSubstr("--machines 2: is of --slurm"));
}

TEST_F(DataCommands, RulesAreListedAsSet) {
  EXPECT_THAT(run_skein({"data", "clean", "--set", "gopher_short_doc=20", "--list-rules"}).out,
              testing::ContainsRegex("gopher_short_doc +20 "));
  EXPECT_THAT(run_skein({"data", "clean", "--list-rules", "--set", "c4=off"}).out,
              testing::ContainsRegex("javascript +off "));
}

TEST_F(DataCommands, AnEvaluationSetMayBeAFolderWithAColumnOfItsOwn) {
  fs::create_directories(path("set"));
  const std::string words = "one two three four five six seven eight nine ten eleven twelve more";
  write("set/a.jsonl", "{\"question\": \"" + words + "\"}\n");
  write("set/b.jsonl", "{\"question\": \"short\"}\n");
  write("a.jsonl", "{\"text\": \"" + words + "\"}\n{\"text\": \"other text\"}\n");
  const Outcome outcome =
      run_skein({"data", "dedup", "--json", "--against", path("set"), "--against-column",
                 "question", "--out", path("d.arrow"), path("a.jsonl")});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_EQ(parse_json(outcome.out, "dedup")["kept"]["documents"], 1) << outcome.out;
}

TEST_F(DataCommands, AnInputThatChangedIsSaidToHave) {
  write("a.txt", "text");
  const Arguments ingest = {"data", "ingest", "--out", path("c.arrow"), path("a.txt")};
  ASSERT_EQ(run_skein(ingest).exit_code, 0);
  write("a.txt", "other text");
  const Outcome outcome = run_skein(ingest);
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_THAT(outcome.err, HasSubstr("inputs have changed since: --overwrite makes it again"));
}

TEST_F(DataCommands, SourcesAreFoundFromElsewhere) {
  write("a.txt", "text");
  const fs::path before = fs::current_path();
  fs::current_path(path(""));
  ASSERT_EQ(run_skein({"data", "ingest", "--out", "c.arrow", "./a.txt"}).exit_code, 0);
  fs::current_path(before);
  EXPECT_THAT(run_skein({"data", "show", path("c.arrow")}).out,
              HasSubstr(fs::path(path("a.txt")).lexically_normal().string() + ":1"));
}

TEST_F(DataCommands, ASeparatorMayBeSpelledWithBackslashes) {
  write("a.txt", "one\n\ntwo\n\n\nthree\n");
  const auto ingest = [&](const Arguments& more) {
    return run_skein(Arguments{"data", "ingest", "--overwrite", "--out", path("c.arrow")} + more);
  };
  const Outcome outcome = ingest({"--document-separator", "\\n\\n", path("a.txt")});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("c.arrow: 3 documents, 11 B of text"));
  expect_refused(ingest({"--document-separator", "\\end", path("a.txt")}), 2,
                 {"--document-separator", "a backslash stands before n, r, t or f"});
  expect_refused(ingest({"--document-separator", "x", "--format", "json", path("a.txt")}), 2,
                 {"--document-separator with --format json"});
  // dedup reads the corpus, in which nothing is separated.
  expect_refused(run_skein({"data", "dedup", "--document-separator", "x", "--out", path("d.arrow"),
                            path("c.arrow")}),
                 2, {"--document-separator", "c.arrow is Arrow"});
  // The tasks of an array get it as it was meant.
  const Outcome array =
      ingest({"--document-separator", "a\\n\\\\b", "--shards", "2", "--slurm", path("a.txt")});
  EXPECT_THAT(array.out, HasSubstr("a\\n\\\\b")) << array.err;
}

// However the template is named, training adds BOS and EOS with the tokenizer beside it.
TEST_F(DataCommands, ATemplateOfATokenizerSpellsItsTokens) {
  fs::copy(fs::path(kSourceFolder) / "skein/data/tokenizer/testdata/forms/llama2", path("tok"));
  write("tok/tokenizer_config.json", R"({"bos_token": "<s>", "eos_token": "</s>"})");
  write("tok/chat_template.jinja",
        "{{ bos_token }}{% for m in messages %}{{ m.content }}{{ eos_token }}{% endfor %}");
  write("chat.jsonl", R"({"prompt": "a", "completion": "b"})");
  for (const char* named : {"tok", "tok/chat_template.jinja"}) {
    const Outcome outcome =
        run_skein({"data", "ingest", "--overwrite", "--chat-template", path(named), "--out",
                   path("chat.arrow"), path("chat.jsonl")});
    ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
    EXPECT_EQ(Corpus(path("chat.arrow")).document(0).str(), "<s>a</s>b</s>") << named;
  }
}

TEST_F(DataCommands, TextsThatCannotBeTakenAreRefused) {
  const std::string out = path("texts.arrow");
  const auto ingest_refused = [](const Arguments& more, int exit_code, const Words& words) {
    expect_refused(run_skein(Arguments{"data", "ingest"} + more), exit_code, words);
  };
  const auto refused = [&](const std::string& name, const std::string& text, const Words& words) {
    write(name, text);
    ingest_refused({"--out", out, path(name)}, 1, words);
    EXPECT_FALSE(fs::exists(out));
  };
  refused("a.txt", "abc\n\xff\xfe zzz\n", {"a.txt", "not UTF-8", "byte 4"});
  const auto no_text = [&](const std::string& name, const std::string& bytes, const char* kind) {
    refused(name, bytes, {name + ": " + kind + ", not text: expected text"});
    const Outcome again = run_skein({"data", "ingest", "--out", out, path(name)});
    EXPECT_EQ(again.err.find("UTF-8"), std::string::npos) << again.err;
  };
  no_text("a.png", "\x89PNG\r\n\x1a\n\xff\xee", "a PNG image");
  no_text("a.txt", "abc\n\xff" + std::string(3, '\0'), "binary data (a null byte at byte 5)");
  no_text("b.txt", std::string("abc\0", 4), "binary data (a null byte at byte 3)");
  refused("a.jsonl", "{\"text\": \"a\"}\n{\"txet\": \"b\"}\n", {"a.jsonl:2", "`text`", "txet"});
  refused("a.jsonl", "{\"text\": \"a\"}\n{\"text\": 5}\n", {"a.jsonl:2", "a number", "a string"});
  refused("a.jsonl", "{\"text\": \"a\"}\n\n{\"text\": \"b\n", {"a.jsonl:3", "not JSON"});
  refused("a.jsonl", "{\"text\": \"a\xff\"}\n", {"a.jsonl:1", "UTF-8"});
  refused("a.jsonl", "", {"a.jsonl", "no text"});
  refused("a.jsonl.gz", "this is no gzip", {"a.jsonl.gz", "gzip"});
  refused("a.jsonl.zst", "this is no zstd", {"a.jsonl.zst", "zstd"});
  refused("a.parquet", "this is no parquet", {"a.parquet", "Parquet"});
  ingest_refused({"--out", out, "/nowhere"}, 1, {"/nowhere", "no such file or folder"});
  write("good.txt", "text\n");
  const std::string text = path("good.txt");
  write("corpus.arrow", "another corpus");
  ingest_refused({"--out", path("corpus.arrow"), text}, 2, {"corpus.arrow: exists", "--overwrite"});
  ingest_refused({"--out", ".", text}, 2, {"--out .: is a folder"});
  ingest_refused({"--validation-fraction", "0.1", "--out", out, text}, 2,
                 {"--validation-fraction", "--validation-out"});
}

}  // namespace
}  // namespace skein
