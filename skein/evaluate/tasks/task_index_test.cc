#include "skein/evaluate/tasks/task_index.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <optional>

#include "skein/evaluate/tasks/task_folders.h"
#include "skein/evaluate/tasks/top_level_keys.h"
#include "skein/jinja/values/value.h"
#include "tests/error_of.h"
#include "tests/temp_folder.h"

namespace skein {
namespace {

namespace fs = std::filesystem;
using test::error_of;

// A variable of the environment, as it was at the end.
class Variable {
 public:
  Variable(std::string name, const std::string& value) : name_(std::move(name)) {
    if (const char* const former = std::getenv(name_.c_str())) former_ = former;
    setenv(name_.c_str(), value.c_str(), 1);
  }
  ~Variable() {
    if (former_) setenv(name_.c_str(), former_->c_str(), 1);
    if (!former_) unsetenv(name_.c_str());
  }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;

 private:
  std::string name_;
  std::optional<std::string> former_;
};

// The keys that a scan finds, as "group=a tag=[b,c]"; "unsure" where it is.
std::string scanned(const std::string& text) {
  auto keys = scan_top_level_keys(text);
  if (!keys) return "unsure";
  std::string found;
  for (const char* name : {"class", "group", "task", "tag", "include"}) {
    const jinja::Value& value = *keys->find(name);
    if (value.is_undefined()) continue;
    found += (found.empty() ? "" : " ") + std::string(name) + "=";
    if (value.is_string()) found += value.text();
    if (!value.is(jinja::Kind::kSequence)) continue;
    found += "[";
    for (const jinja::Value& item : value.as_sequence().items) found += item.text() + ",";
    found += "]";
  }
  return found;
}

TEST(TopLevelKeys, AreScannedWhereThatIsSafe) {
  EXPECT_EQ(scanned("task: a_b-1.2\ntag: 'x y' # c\n"), "task=a_b-1.2 tag=x y");
  EXPECT_EQ(scanned("# c\n\ngroup: g\ntask:\n  - a\n  - task: b\n    k: v\nk: 1"),
            "group=g task=[]");
  EXPECT_EQ(scanned("tag:\n- a\n# c\n- \"b\"\ninclude: ../x/_y.yaml\n"),
            "tag=[a,b,] include=../x/_y.yaml");
  EXPECT_EQ(scanned("task: a\ndoc_to_text: |\n  task: b\n  tag: c\n"), "task=a");
  EXPECT_EQ(scanned("task: a\ntask: b\n"), "task=b");
  EXPECT_EQ(scanned("text: \"a\ntask: b\"\ntask: c"), "task=c");
  EXPECT_EQ(scanned("text: 'a''\n\n  task: b'  # c\n\"task\": \"d\"\n\"k\":\n"), "task=d");
}

TEST(TopLevelKeys, AScanIsNotSureOfOtherForms) {
  for (const char* text : {"task: yes\n",
                           "task: 1\n",
                           "task: a b\n",
                           "task: a\n  b\n",
                           "task: !x a\n",
                           "tag: [a, b]\n",
                           "task:\n",
                           "task:\nk: 1\n",
                           "task: 'it''s'\n",
                           "task: \"a\\n\"\n",
                           "task: 'a\nb'\n",
                           "text: \"a\ntask: b\n",
                           "text: 'a\n' b\n",
                           "{task: a}\n",
                           "? task\n: a\n",
                           "'task': a\n",
                           "task : a\n",
                           "--- \ntask: a\n",
                           "task: a\r\n",
                           "tag:\n  - a\n  - [b]\n",
                           "tag:\n  k: v\n",
                           "\ttask: a\n",
                           "k: [\ntask: a\n]\n",
                           "tag: a\n- b\n",
                           "<<: *x\ntask: a\n",
                           "task: &x a\n",
                           "tag: |\n  a\n"}) {
    EXPECT_EQ(scanned(text), "unsure") << text;
  }
}

TEST(TopLevelKeys, AreParsedWhereTheScanIsNotSure) {
  EXPECT_EQ(top_level_keys("{'task': a, tag: [b, c]}", "x").task.text(), "a");
  EXPECT_EQ(top_level_keys("task: 'it''s'\n", "x").task.text(), "it's");
  EXPECT_EQ(error_of([] { top_level_keys("- a\n", "x.yaml"); }),
            "x.yaml: a list; expected a dict, such as `task: name`");
}

TEST(TaskIndex, NotesNameWhatIsLeftOut) {
  const fs::path folder =
      fs::path(__FILE__).parent_path().parent_path() / "testdata" / "tasks" / "first";
  const TaskIndex index({folder});
  EXPECT_EQ(index.nearest("colours_ski"), "colours_sky");
  EXPECT_EQ(index.matches("colours_*"), (std::vector<std::string>{"colours_sea", "colours_sky"}));
  const auto noted = [&](const std::string& file) {
    const auto& notes = index.notes();
    return std::any_of(notes.begin(), notes.end(), [&](const std::string& note) {
      return note.starts_with((folder / file).string());
    });
  };
  for (const char* file :
       {"a_list.yaml", "loop.yaml", "missing.yaml", "neither.yaml", "no_yaml.yaml",
        "task_is_a_list.yaml", "zz_colours.yaml", "zz_count_again.yaml"}) {
    EXPECT_TRUE(noted(file)) << file;
  }
  EXPECT_FALSE(noted("colours_sea.yaml"));
  EXPECT_EQ(
      error_of([&] { TaskIndex({folder / "none"}); }),
      (folder / "none").string() + ": no folder of task files; expected a folder with *.yaml");
}

TEST(TaskFolders, AreThoseOfTheEnvironment) {
  const test::TempFolder folder;
  const fs::path root = folder.path();
  const Variable no_tasks("SKEIN_TASKS", ""), no_environment("VIRTUAL_ENV", ""),
      no_conda("CONDA_PREFIX", ""), no_path("PATH", ""), home("HOME", root.string());
  using Folders = std::vector<fs::path>;
  for (const char* version : {"python3.9", "python3.11"}) {
    fs::create_directories(root / ".local/lib" / version / "site-packages/lm_eval/tasks");
  }
  const fs::path of_home = root / ".local/lib/python3.11/site-packages/lm_eval/tasks";
  EXPECT_EQ(task_folders({"a", "b"}), (Folders{of_home, "a", "b"}));
  fs::create_directories(root / "venv/lib/python3.10/site-packages/lm_eval/tasks");
  const Variable environment("VIRTUAL_ENV", (root / "venv").string());
  EXPECT_EQ(task_folders({}), Folders{root / "venv/lib/python3.10/site-packages/lm_eval/tasks"});
  fs::create_directories(root / "wheel/lm_eval/tasks");
  fs::create_directories(root / "own");
  const Variable tasks("SKEIN_TASKS", (root / "wheel").string() + ":" + (root / "own").string());
  EXPECT_EQ(task_folders({"a"}), (Folders{root / "wheel/lm_eval/tasks", root / "own", "a"}));
  const Variable wrong("SKEIN_TASKS", (root / "none").string());
  EXPECT_EQ(error_of([] { task_folders({}); }).find("SKEIN_TASKS names"), 0U);
  EXPECT_NE(how_to_fetch_tasks().find("pip download --no-deps lm-eval==0.4.13"), std::string::npos);
}

}  // namespace
}  // namespace skein
