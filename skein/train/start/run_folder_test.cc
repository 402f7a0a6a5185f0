#include "skein/train/start/run_folder.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <csignal>
#include <fstream>
#include <map>

#include "skein/base/error.h"
#include "skein/checkpoint/find/run_lock.h"
#include "skein/model/decoder.h"
#include "tests/places.h"

namespace skein {
namespace {

class RunFolder : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = testing::TempDir() + "/run_folder_XXXXXX";
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    folder_ = fs::path(name).lexically_normal();
  }
  void TearDown() override { fs::remove_all(folder_); }
  Config config(const std::string& run) const {
    Config config;
    config.run.dir = (folder_ / run).string();
    config.data.train = "corpus.arrow";
    config.data.tokenizer = "/data/tok";
    return config;
  }
  fs::path folder_;
};

TEST_F(RunFolder, NamesWhatItHoldsFromItsOwnPlace) {
  Config mine = config("run/");
  mine.run.accept_changes = "data.train";
  mine.data.validation = (folder_ / "run" / "texts" / ".." / "held_out.arrow").string();
  mine.checkpoint.dir = (folder_ / "runner").string();  // not inside run.dir
  mine.launch.rendezvous = "etcd://host:1";
  const Config found = config_of_run_folder(mine);
  EXPECT_EQ(found.run.dir, "{config_dir}");
  EXPECT_EQ(found.run.resume, "auto");
  EXPECT_EQ(found.run.accept_changes, "");
  EXPECT_EQ(found.data.train, (fs::current_path() / "corpus.arrow").string());
  EXPECT_EQ(found.data.validation, "{config_dir}/held_out.arrow");
  EXPECT_EQ(found.data.tokenizer, "{config_dir}/tokenizer");
  EXPECT_EQ(found.model.hf_config, "{config_dir}/model.json");
  EXPECT_EQ(found.model.init_from, "");
  EXPECT_EQ(found.checkpoint.dir, (folder_ / "runner").string());
  EXPECT_EQ(found.launch.rendezvous, "etcd://host:1");
  // A model given inline in [model] needs no file.
  mine.model.hf_config.clear();
  mine.model.inline_keys["hidden_size"] = 64;
  EXPECT_EQ(config_of_run_folder(mine).model.hf_config, "");
}

TEST_F(RunFolder, IsReadFromWhereItsFileLies) {
  const Config mine = config("run");
  fs::create_directories(folder_ / "run");
  std::ofstream(folder_ / "run" / "config.toml") << config_text(config_of_run_folder(mine));
  fs::rename(folder_ / "run", folder_ / "moved");
  const Config found = load_config((folder_ / "moved" / "config.toml").string());
  EXPECT_EQ(found.run.dir, (folder_ / "moved").string());
  EXPECT_EQ(found.data.tokenizer, (folder_ / "moved" / "tokenizer").string());
  EXPECT_EQ(found.data.train, (fs::current_path() / "corpus.arrow").string());
}

// The copy ends texts as the original does, whichever file says so there.
TEST_F(RunFolder, ItsCopyOfATokenizerIsTheSameTokenizer) {
  const fs::path json = fs::path(kSourceFolder) / "skein/data/tokenizer/testdata/byte_level/gpt2";
  const std::map<std::string, std::string> eos = {
      {"config.json", R"({"eos_token_id": 5})"},
      {"generation_config.json", R"({"eos_token_id": [7, 1], "temperature": 0.6})"}};
  const std::map<std::string, std::string> no_eos = {
      {"config.json", R"({"eos_token_id": 5})"},
      {"generation_config.json", R"({"temperature": 0.6})"}};
  const DecoderConfig model = parse_decoder({{"model_type", "llama"},
                                             {"hidden_size", 8},
                                             {"num_hidden_layers", 1},
                                             {"num_attention_heads", 2},
                                             {"intermediate_size", 8},
                                             {"vocab_size", 600}},
                                            "test");
  for (const auto& files : {eos, no_eos}) {
    const fs::path folder = folder_ / "source", run = folder_ / "run";
    fs::create_directories(folder);
    fs::copy_file(json / "tokenizer.json", folder / "tokenizer.json",
                  fs::copy_options::overwrite_existing);
    for (const auto& [name, text] : files) std::ofstream(folder / name) << text;
    const auto tokenizer = Tokenizer::load(folder);
    EXPECT_EQ(tokenizer->eos_id(), files == eos ? 7 : 5);
    write_run_folder(config("run"), model, *tokenizer);
    const auto copy = Tokenizer::load(run / "tokenizer");
    EXPECT_EQ(copy->eos_id(), tokenizer->eos_id());
    EXPECT_EQ(copy->content_hash(), tokenizer->content_hash());
    write_run_folder(config("run"), model, *copy);  // the next start
    EXPECT_EQ(Tokenizer::load(run / "tokenizer")->content_hash(), tokenizer->content_hash());
  }
}

TEST_F(RunFolder, OfAnotherRunWithTheSameConfigurationSaysThatWeightsAreNew) {
  const fs::path file = folder_ / "run" / "config.toml";
  const std::vector<std::string> elsewhere = {"run.dir=" + (folder_ / "fork").string()};
  Config fork = config("fork");
  EXPECT_EQ(note_of_fork(file, elsewhere, fork), "");  // there is nothing to begin from
  fs::create_directories(folder_ / "run/checkpoints/step-00000010");
  std::ofstream(folder_ / "run/checkpoints/step-00000010/manifest.json") << "{}";
  const std::string note = note_of_fork(file, elsewhere, fork);
  EXPECT_NE(note.find("begins from new weights"), std::string::npos) << note;
  EXPECT_NE(note.find("--set run.resume=" + (folder_ / "run").string()), std::string::npos);
  EXPECT_EQ(note_of_fork(file, {}, config("run")), "");
  fork.run.resume = (folder_ / "run").string();
  EXPECT_EQ(note_of_fork(file, elsewhere, fork), "");
  fs::create_directories(folder_ / "fork");
  std::ofstream(folder_ / "fork/config.toml") << "";
  fork.run.resume = "auto";
  EXPECT_EQ(note_of_fork(file, elsewhere, fork), "");  // it has begun
}

TEST_F(RunFolder, OfAStartThatNeverTrainedIsRemoved) {
  const auto start = [&](const Config& config, bool trains) {
    const NewRunFolder guard(config);
    fs::create_directories(fs::path(config.run.dir) / "logs");
    fs::create_directories(checkpoint_dir(config));
    const RunLock lock(config.run.dir);
    std::ofstream(fs::path(config.run.dir) / "events.jsonl") << "{}\n";
    if (trains) std::ofstream(fs::path(config.run.dir) / "config.toml") << "x";
  };
  start(config("a/b/run"), false);
  EXPECT_FALSE(fs::exists(folder_ / "a"));
  // A run that began to train stays, also when a later start is refused.
  start(config("a/b/run"), true);
  start(config("a/b/run"), false);
  EXPECT_TRUE(fs::exists(folder_ / "a/b/run/events.jsonl"));
  // Checkpoints are never touched.
  fs::create_directories(folder_ / "saved" / "checkpoints" / "step-00000010");
  start(config("saved"), false);
  EXPECT_TRUE(fs::exists(folder_ / "saved" / "checkpoints" / "step-00000010"));
  EXPECT_FALSE(fs::exists(folder_ / "saved" / "logs"));
}

TEST_F(RunFolder, InUseByAnotherIsLeftAlone) {
  const fs::path dir = folder_ / "run";
  std::optional<RunLock> other;
  {
    const NewRunFolder guard(config("run"));
    other.emplace(dir);
    fs::create_directories(dir / "logs");
  }
  EXPECT_TRUE(fs::exists(dir / "logs"));
}

// A file may be made there, but nothing be written to it.
TEST_F(RunFolder, AFullDiskDoesNotKeepWhatAStartMade) {
  const Config full = config("a/run");
  struct rlimit before {};
  ::getrlimit(RLIMIT_FSIZE, &before);
  const auto handler = ::signal(SIGXFSZ, SIG_IGN);
  {
    const NewRunFolder guard(full);
    fs::create_directories(fs::path(full.run.dir) / "logs");
    fs::create_directories(checkpoint_dir(full));
    const struct rlimit none = {0, before.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &none);
    EXPECT_THROW(RunLock(full.run.dir), Error);
  }
  ::setrlimit(RLIMIT_FSIZE, &before);
  ::signal(SIGXFSZ, handler);
  EXPECT_FALSE(fs::exists(folder_ / "a"));
}

TEST_F(RunFolder, CopiesServeWhereTheOriginalIsGone) {
  Config mine = config("run");
  mine.data.tokenizer = (folder_ / "tok").string();
  mine.model.hf_config = (folder_ / "model.json").string();
  fs::create_directories(folder_ / "run" / "tokenizer");
  std::ofstream(folder_ / "run" / "model.json") << "{}";
  Config copied = mine;
  const std::vector<std::string> said = use_own_copies(copied, {});
  ASSERT_EQ(said.size(), 2u);
  EXPECT_NE(said[0].find(mine.data.tokenizer), std::string::npos) << said[0];
  EXPECT_EQ(copied.data.tokenizer, (folder_ / "run" / "tokenizer").string());
  EXPECT_EQ(copied.model.hf_config, (folder_ / "run" / "model.json").string());
  fs::create_directories(folder_ / "tok");
  std::ofstream(folder_ / "model.json") << "{}";
  copied = mine;
  EXPECT_TRUE(use_own_copies(copied, {}).empty());
  EXPECT_EQ(copied, mine);
  // A path given on the command line is meant for this start, so it is not replaced.
  copied.data.tokenizer = "/nowhere";
  const std::vector<std::string> overrides = {"data.tokenizer=/nowhere"};
  EXPECT_TRUE(use_own_copies(copied, overrides).empty());
}

TEST_F(RunFolder, CorporaThatAreGoneAreLookedForInItAndBesideIt) {
  Config mine = config("run");
  mine.data.train = (folder_ / "gone" / "train.arrow").string();
  mine.data.validation = (folder_ / "gone" / "held_out.arrow").string();
  fs::create_directories(folder_ / "run" / "tokenizer");
  std::ofstream(folder_ / "train.arrow") << "x";
  std::ofstream(folder_ / "run" / "held_out.arrow") << "x";
  // A run that has not begun has no text of its own that it could be taken for.
  Config found = mine;
  EXPECT_EQ(use_own_copies(found, {}).size(), 1u);  // of the tokenizer
  EXPECT_EQ(found.data.train, mine.data.train);
  std::ofstream(folder_ / "run" / "config.toml") << "";
  EXPECT_EQ(use_own_copies(found, {}).size(), 2u);
  EXPECT_EQ(found.data.train, (folder_ / "train.arrow").string());
  EXPECT_EQ(found.data.validation, (folder_ / "run" / "held_out.arrow").string());
  // What is there, and what the command line says, stay.
  EXPECT_TRUE(use_own_copies(found, {}).empty());
  fs::remove(folder_ / "train.arrow");
  const std::vector<std::string> overrides = {"data.train=" + found.data.train};
  EXPECT_TRUE(use_own_copies(found, overrides).empty());
  EXPECT_THROW(use_own_copies(found, {}), Error);
}

}  // namespace
}  // namespace skein
