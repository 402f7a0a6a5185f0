// testdata/tasks/task_cases.json is made by scripts/goldens/evaluation_tasks.py: what
// lm-evaluation-harness makes of the files beside it.
#include "skein/evaluate/tasks/load_tasks.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <map>
#include <memory>
#include <set>

#include "skein/evaluate/tasks/known_files.h"
#include "skein/evaluate/tasks/task_folders.h"
#include "skein/evaluate/tasks/task_rows_test.h"
#include "tests/error_of.h"
#include "tests/places.h"
#include "tests/temp_folder.h"

namespace skein {
namespace {

namespace fs = std::filesystem;
using test::error_of;

fs::path testdata() {
  return fs::canonical(fs::path(__FILE__).parent_path().parent_path() / "testdata" / "tasks");
}

const TaskIndex& index_of_testdata() {
  static const TaskIndex index({testdata() / "first", testdata() / "second"});
  return index;
}

// Paths begin with that of the testdata.
Json without_folder(const Json& json) {
  std::string text = json.dump();
  const std::string folder = testdata().string() + "/";
  for (size_t at = text.find(folder); at != std::string::npos; at = text.find(folder, at)) {
    text.erase(at, folder.size());
  }
  return Json::parse(text);
}

std::string load_error(const std::vector<std::string>& names) {
  TaskLoader loader(index_of_testdata());
  std::string error = error_of([&] { loader.load(names); });
  const std::string folder = testdata().string() + "/";
  for (size_t at = error.find(folder); at != std::string::npos; at = error.find(folder, at)) {
    error.erase(at, folder.size());
  }
  return error;
}

void write(const fs::path& file, const std::string& text) { std::ofstream(file) << text; }

TEST(LoadTasks, AgreesWithTheHarness) {
  const Json cases = read_json((testdata() / "task_cases.json").string());
  ASSERT_EQ(cases.size(), 19U);
  // Read there, refused here by name.
  const std::set<std::string> unsupported = {"of_a_class", "pictures"};
  TaskLoader loader(index_of_testdata());
  std::set<std::string> names = {"twice"};  // left out there, refused here
  for (const Json& theirs : cases) {
    const std::string name = theirs.at("name");
    names.insert(name);
    const TaskEntry* const entry = index_of_testdata().find(name);
    ASSERT_NE(entry, nullptr) << name;
    Json ours = without_folder(test::row_of(*entry, loader));
    if (theirs.contains("error") || unsupported.contains(name)) {
      EXPECT_TRUE(ours.contains("error")) << name;
    } else {
      EXPECT_EQ(ours.dump(1), theirs.dump(1)) << name;
    }
  }
  for (const auto& [name, entry] : index_of_testdata().entries()) {
    EXPECT_TRUE(names.contains(name)) << name;
  }
}

TEST(LoadTasks, TakesPatternsTagsAndFiles) {
  TaskLoader loader(index_of_testdata());
  const auto names = [&](const std::vector<std::string>& specs) {
    std::vector<std::string> found;
    for (const TaskNode& node : loader.load(specs)) found.push_back(node.name());
    return found;
  };
  using Names = std::vector<std::string>;
  EXPECT_EQ(names({"colours_s*"}), (Names{"colours_sea", "colours_sky", "colours_sky_2"}));
  EXPECT_EQ(names({"colours_se?", "[!a-bd-z]ount"}), (Names{"colours_sea", "count"}));
  EXPECT_EQ(names({"wet", "plain", "plain"}), (Names{"colours_sea", "plain"}));
  EXPECT_EQ(names({(testdata() / "first/zz_count_again.yaml").string()}), Names{"count"});
  const auto groups = groups_of(loader.load({"everything"}));
  ASSERT_EQ(groups.size(), 3U);
  EXPECT_EQ(groups[2]->name, "everything::inside");
  EXPECT_EQ(groups[2]->child_names(), (Names{"plain", "everything::inside::own"}));
  const auto tasks = tasks_of(loader.load({"everything"}));
  ASSERT_EQ(tasks.size(), 5U);
  EXPECT_EQ(tasks[1]->task, "plain");
  EXPECT_EQ(tasks[1]->repeats, 2);  // the last of that name
}

TEST(LoadTasks, ErrorsNameTheFileAndWhatToDo) {
  EXPECT_EQ(load_error({"colour_sky"}),
            "no task, group or tag has the name colour_sky: did you mean colours_sky?");
  EXPECT_EQ(load_error({"x*"}), "no task, group or tag has a name like x*");
  EXPECT_EQ(load_error({"typo"}),
            "first/typo.yaml: task typo: unknown key doc_to_tekst: did you mean doc_to_text?");
  EXPECT_EQ(load_error({"fewshot_typo"}),
            "first/fewshot_typo.yaml: task fewshot_typo: fewshot_config: unknown key example; "
            "remove it");
  EXPECT_EQ(load_error({"of_a_class"}),
            "first/of_a_class.yaml: task of_a_class: class: a class of Python, which is not run; "
            "expected a task that its file describes alone");
  EXPECT_EQ(load_error({"pictures"}),
            "first/pictures.yaml: task pictures: doc_to_image: images are not supported; expected "
            "a task of text alone");
  EXPECT_EQ(load_error({"colours_sky", "colours_sky_2", "colours"}), "");
  EXPECT_EQ(load_error({"numbers_group", "count"}),
            "the task count is in numbers_group and in count; name one of them");
  EXPECT_EQ(load_error({"twice"}),
            "first/_colours_yaml is included twice, the second time by first/twice.yaml -> "
            "first/colours_sky.yaml; include it once");
  EXPECT_EQ(load_error({(testdata() / "first/loop.yaml").string()}),
            "first/loop.yaml includes itself: first/loop.yaml -> first/loop_2.yaml -> "
            "first/loop.yaml");
  EXPECT_EQ(load_error({(testdata() / "first/missing.yaml").string()}),
            "first/nowhere.yaml, which first/missing.yaml includes: No such file or directory");
}

TEST(LoadTasks, GroupsAreBounded) {
  const test::TempFolder folder;
  std::string files;
  write(folder.path() / "leaf.yaml", "task: leaf\n");
  write(folder.path() / "a.yaml", "group: a\ntask: [b]\n");
  write(folder.path() / "b.yaml", "group: b\ntask: [{group: a}]\n");
  write(folder.path() / "g0.yaml", "group: g0\ntask: [leaf]\n");
  for (int i = 1; i < 25; ++i) {
    const std::string former = "g" + std::to_string(i - 1), name = "g" + std::to_string(i);
    write(folder.path() / (name + ".yaml"),
          "group: " + name + "\ntask: [" + former + ", " + former + "]\n");
  }
  const TaskIndex index({folder.path()});
  TaskLoader loader(index);
  EXPECT_NE(error_of([&] { loader.load({"a"}); }).find("inside itself: a -> b -> a"),
            std::string::npos);
  EXPECT_NE(error_of([&] { loader.load({"g24"}); }).find("more than 50000 tasks"),
            std::string::npos);
  EXPECT_EQ(error_of([&] { loader.load({"g3"}); }), "");
}

TEST(LoadTasks, AGroupInAGroupKeepsItsTasks) {
  const test::TempFolder folder;
  write(folder.path() / "x.yaml", "task: x\ntag: t\n");
  write(folder.path() / "y.yaml", "task: y\ntag: t\n");
  write(folder.path() / "g.yaml", "group: g\ntask: [x, y]\n");
  write(folder.path() / "h.yaml", "group: h\ntask: [{task: g, num_fewshot: 3}]\n");
  write(folder.path() / "i.yaml", "group: i\ntask: [{task: t, num_fewshot: 4}]\n");
  const TaskIndex index({folder.path()});
  TaskLoader loader(index);
  for (const char* name : {"h", "i"}) {
    const auto tasks = tasks_of(loader.load({name}));
    ASSERT_EQ(tasks.size(), 2U) << name;
    EXPECT_EQ(tasks[0]->task, "x");
    EXPECT_EQ(tasks[1]->num_fewshot, *name == 'h' ? 3 : 4);
  }
}

TEST(LoadTasks, FunctionsHaveAFile) {
  TaskLoader loader(index_of_testdata());
  const auto task = loader.load({"count"}).at(0).task;
  EXPECT_EQ(function_name(task->process_docs), "helper.clean");
  EXPECT_EQ(function_file(task->process_docs), testdata() / "first/inner/helper.py");
  EXPECT_EQ(function_name(task->doc_to_target), std::nullopt);
  EXPECT_EQ(task->metrics.at(0).name, "own");
  EXPECT_EQ(task->metrics.at(0).aggregation, "middle");
}

// For scripts/goldens/evaluation_tasks.py --all: every name of the folders, a line of JSON each.
TEST(LoadTasks, DumpsAll) {
  const char* const file = std::getenv("SKEIN_DUMP_TASKS");
  if (file == nullptr) GTEST_SKIP() << "SKEIN_DUMP_TASKS names no file";
  const TaskIndex index(task_folders({}));
  TaskLoader loader(index);
  std::ofstream out(file);
  for (const auto& [name, entry] : index.entries()) out << test::row_of(entry, loader) << "\n";
}

// configs/eval: with the harness's tasks, here stubs, the group has its tasks and numbers of
// examples.
TEST(LoadTasks, TheOriginalSuites) {
  const test::TempFolder folder;
  for (const char* name :
       {"mmlu", "bbh_fewshot", "piqa", "social_iqa", "hellaswag", "winogrande", "arc_easy",
        "arc_challenge", "openbookqa", "nq_open", "triviaqa", "boolq", "gsm8k"}) {
    std::ofstream(folder / (std::string(name) + ".yaml"))
        << "task: " << name << "\ndataset_path: made\noutput_type: multiple_choice\n"
        << "test_split: test\ndoc_to_text: q\ndoc_to_choice: c\ndoc_to_target: t\n";
  }
  const TaskIndex index({fs::path(kSourceFolder) / "configs" / "eval", folder / ""});
  const std::vector<TaskNode> nodes = TaskLoader(index).load({"original"});
  std::map<std::string, std::shared_ptr<const TaskConfig>> tasks;
  for (const auto& task : tasks_of(nodes)) tasks[task->task] = task;
  ASSERT_EQ(tasks.size(), 14u);
  EXPECT_EQ(tasks.at("mmlu")->num_fewshot, 5);
  EXPECT_EQ(tasks.at("gsm8k")->num_fewshot, 8);
  EXPECT_EQ(tasks.at("triviaqa")->num_fewshot, 5);
  const TaskConfig& code = *tasks.at("original_humaneval");
  EXPECT_EQ(code.repeats, 200);
  EXPECT_EQ(folder_of(code.metrics.at(0).function), "humaneval");
}

}  // namespace
}  // namespace skein
