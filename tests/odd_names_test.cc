// Names that are not UTF-8, and names that a terminal would obey. What a run must write down is
// refused before anything is made; what need not be written down does no harm.
#include "skein/base/text/visible_text.h"
#include "tests/testing.h"

namespace skein {
namespace {

constexpr const char *kLatin1 = "alt\xf6", *kShown = "alt\\xf6";

const TinyJob& job() {
  static const TinyJob job;
  return job;
}

// Every path of a configuration that a start needs, in a folder in Latin-1. One worker and two, and
// the plan, say the same.
TEST(OddNames, APathThatIsNotUtf8IsRefusedWhereItIsRead) {
  const fs::path odd = job().folder / kLatin1;
  fs::create_directories(odd);
  fs::copy_file(job().corpus(), odd / "corpus.arrow");
  fs::copy(job().tokenizer(), odd / "tokenizer");
  const std::pair<std::string, fs::path> cases[] = {{"run.dir", odd / "run"},
                                                    {"checkpoint.dir", odd / "checkpoints"},
                                                    {"data.train", odd / "corpus.arrow"},
                                                    {"data.validation", odd / "corpus.arrow"},
                                                    {"data.tokenizer", odd / "tokenizer"}};
  for (const auto& [key, path] : cases) {
    const std::string setting = key + "=" + path.string();
    for (const Arguments& arguments :
         {job().arguments("train", "odd", {setting}),
          job().arguments("train", "odd", {setting, "launch.workers=2"}),
          job().arguments("plan", "odd", {setting})}) {
      expect_refused(run_skein(arguments), 2, {key + " is '", kShown, "not UTF-8", "rename"});
    }
    EXPECT_FALSE(fs::exists(job().run("odd")));
    EXPECT_FALSE(fs::exists(odd / "run") || fs::exists(odd / "checkpoints"));
  }
}

TEST(OddNames, SoIsTheWorkingFolderThatAPathCountsFrom) {
  const fs::path odd = job().folder / "dort\xf6", before = fs::current_path();
  fs::create_directories(odd);
  fs::current_path(odd);
  const Arguments arguments = {"train", job().config().string(), "--set", "run.dir=run"};
  expect_refused(run_skein(arguments), 2, {"run.dir is 'run'", "dort\\xf6", "not UTF-8"});
  EXPECT_TRUE(fs::is_empty(odd));
  // One with absolute paths alone does not need it.
  job().trained("from_odd_folder", {"run.steps=1"});
  fs::current_path(before);
}

// A link to a run whose path cannot be written down: the path that was given is.
TEST(OddNames, ARunThatBeginsThroughALinkToOneSaves) {
  const fs::path odd = job().folder / "runs\xf6", link = job().folder / "link";
  fs::create_directories(odd);
  job().trained("parent", {"run.steps=4", "checkpoint.every_steps=2"});
  fs::rename(job().run("parent"), odd / "parent");
  fs::create_directory_symlink(odd / "parent", link);
  for (const char* workers : {"1", "2"}) {
    const std::string name = std::string("child_") + workers;
    const Overrides overrides = {"run.resume=" + link.string(), "checkpoint.every_steps=1",
                                 std::string("launch.workers=") + workers};
    job().trained(name, overrides + Overrides{"run.steps=5"});
    expect_checkpoints_good(job().run(name));
    const Json manifest = read_json((job().checkpoint(name, 5) / "manifest.json").string());
    EXPECT_EQ(manifest.at("timeline").at("parent").at("path"),
              (link / "checkpoints" / checkpoint_folder_name(4)).lexically_normal().string());
    // The same command continues the run, and knows that it began from there.
    job().trained(name, overrides + Overrides{"run.steps=6"});
    EXPECT_TRUE(fs::exists(job().checkpoint(name, 6) / "manifest.json"));
  }
  const Overrides weights = {"model.init_from=" + link.string(), "run.steps=1"};
  job().trained("weights", weights);
  expect_checkpoints_good(job().run("weights"));
}

// A corpus and a tokenizer through links, and names of files in folders that are read as a whole.
TEST(OddNames, LinksToOtherNamesDoNoHarm) {
  const fs::path odd = job().folder / "woanders\xf6";
  fs::create_directories(odd);
  fs::copy_file(job().corpus(), odd / "corpus\xf6.arrow");
  fs::copy(job().tokenizer(), odd / "tokenizer\xf6");
  fs::create_symlink(odd / "corpus\xf6.arrow", job().folder / "linked.arrow");
  fs::create_directory_symlink(odd / "tokenizer\xf6", job().folder / "linked_tokenizer");
  job().trained("linked",
                {"data.train=" + (job().folder / "linked.arrow").string(),
                 "data.tokenizer=" + (job().folder / "linked_tokenizer").string(), "run.steps=2"});
  expect_checkpoints_good(job().run("linked"));
  const fs::path in = job().folder / "in\xf6";
  fs::create_directories(in);
  std::ofstream(in / "a\xf6.jsonl") << "{\"text\": \"some text\"}\n";
  const fs::path out = in / "out\xf6.arrow";
  TinyJob::must({"data", "ingest", "--out", out.string(), in.string()});
  const Outcome stats = TinyJob::must({"data", "stats", out.string(), "--json"});
  EXPECT_FALSE(Json::parse(stats.out, nullptr, false).is_discarded()) << stats.out;
  const fs::path exported = job().folder / "hf\xf6";
  TinyJob::must({"checkpoint", "export", job().run("linked").string(), "--out", exported.string()});
  TinyJob::must({"generate", "--model", exported.string(), "--prompt", "a", "--max-tokens", "2"});
  const Outcome listed =
      TinyJob::must({"checkpoint", "list", job().run("linked").string(), "--json"});
  EXPECT_FALSE(Json::parse(listed.out, nullptr, false).is_discarded());
}

// A name may hold what sets the title of a terminal, a line of its own, and a C1 control character.
TEST(OddNames, ATerminalObeysNone) {
  const std::string name =
      "a\x1b]0;pwned\x07\x1b[31mred\nE 12:00:00 made up\xc2\x9b"
      "1m\x7f.zip";
  const fs::path in = job().folder / "obeyed";
  fs::create_directories(in);
  std::ofstream(in / name) << "PK\x03\x04 no archive";
  std::ofstream(in / "b.jsonl") << "{\"text\": \"x\"}\n{\"text\": 1}\n";
  const auto expect_harmless = [](const std::string& text) {
    for (const unsigned char c : text) {
      EXPECT_TRUE(c >= 0x20 || c == '\n') << static_cast<int>(c) << ": " << visible_lines(text);
      EXPECT_NE(c, 0x7f) << visible_lines(text);
    }
    EXPECT_EQ(text.find("\xc2\x9b"), std::string::npos) << visible_lines(text);
    EXPECT_EQ(text.find("\nE 12:00:00 made up"), std::string::npos) << text;
  };
  const Outcome ingest = run_skein({"data", "ingest", "--overwrite", "--out",
                                    (job().folder / "obeyed.arrow").string(), in.string()});
  expect_harmless(ingest.err);
  expect_harmless(ingest.out);
  for (const Arguments& arguments :
       {Arguments{"data", "stats", (in / name).string()},
        {"checkpoint", "list", (in / name).string()},
        {"checkpoint", "verify", (in / name).string()},
        {"score", "--model", (in / name).string(), "--tokens", "x"},
        {"generate", "--model", (in / name).string(), "--prompt", "x"},
        {"report", (in / name).string()},
        {"train", (in / name).string()},
        {"data", "tokenizer", "--vocab-size", "300", "--out", "x", (in / name).string()},
        {"train", job().config().string(), "--set", "data.train=" + (in / name).string()},
        {"data", "ingest", "--out", (in / name).string(), (in / "b.jsonl").string()},
        {name}}) {
    const Outcome outcome = run_skein(arguments);
    EXPECT_NE(outcome.exit_code, 0);
    expect_harmless(outcome.err);
    expect_harmless(outcome.out);
    EXPECT_EQ(outcome.error_lines().size(), 1u) << outcome.err;
  }
  // A run of that name: what is said of it, in its logs too, is a line each.
  const Outcome trained = job().train("run\x1b[31m\nE 12:00:00 made up\xc2\x9b", {"run.steps=2"});
  EXPECT_EQ(trained.exit_code, 0) << trained.err;
  expect_harmless(trained.err);
  for (const auto& entry :
       fs::directory_iterator(job().run("run\x1b[31m\nE 12:00:00 made up\xc2\x9b") / "logs")) {
    expect_harmless(read_file(entry.path()));
  }
}

}  // namespace
}  // namespace skein
