#include "skein/launch/place/rank_info.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "skein/base/error.h"

namespace skein {
namespace {

using testing::HasSubstr;
using Environment = std::map<std::string, std::string>;

std::optional<RankInfo> rank_info_in(const Environment& environment) {
  return rank_info_from_environment([&](const char* name) -> const char* {
    const auto found = environment.find(name);
    return found == environment.end() ? nullptr : found->second.c_str();
  });
}

// `base` with some variables changed; an empty value unsets.
Environment with(Environment base, const Environment& changes) {
  for (const auto& [name, value] : changes) {
    if (value.empty()) {
      base.erase(name);
    } else {
      base[name] = value;
    }
  }
  return base;
}

const Environment kSkein = {{"SKEIN_RANK", "3"},
                            {"SKEIN_SIZE", "8"},
                            {"SKEIN_LOCAL_RANK", "3"},
                            {"SKEIN_LOCAL_SIZE", "4"},
                            {"SKEIN_START_ID", "20250102T030405-0a1b2c3d"}};
const Environment kTorchrun = {
    {"RANK", "3"},
    {"WORLD_SIZE", "4"},
    {"LOCAL_RANK", "3"},
    {"LOCAL_WORLD_SIZE", "4"},
    {"GROUP_RANK", "0"},
    {"MASTER_PORT", "29500"},
    {"TORCHELASTIC_RUN_ID", "none"},
    {"TORCHELASTIC_RESTART_COUNT", "0"},
    {"TORCHELASTIC_MAX_RESTARTS", "3"},
    {"TORCHELASTIC_ERROR_FILE", "/tmp/torchelastic_a/none_b/attempt_0/3/error.json"}};
const Environment kTorchrunNodes =
    with(kTorchrun, {{"WORLD_SIZE", "8"},
                     {"RANK", "7"},
                     {"TORCHELASTIC_RUN_ID", "job-17"},
                     {"TORCHELASTIC_MAX_RESTARTS", "0"},
                     {"TORCHELASTIC_ERROR_FILE", "/tmp/torchelastic_x/b/attempt_0/3/error.json"}});
const Environment kOpenMpi = {{"OMPI_COMM_WORLD_RANK", "5"},
                              {"OMPI_COMM_WORLD_SIZE", "6"},
                              {"OMPI_COMM_WORLD_LOCAL_RANK", "1"},
                              {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"},
                              {"OMPI_MCA_ess_base_jobid", "2889678849"},
                              {"OMPI_MCA_orte_hnp_uri", "44093.0;tcp://127.0.0.1:34567"},
                              {"PMIX_NAMESPACE", "2889678849"}};
const Environment kSlurm = {
    {"SLURM_JOB_ID", "1234"},      {"SLURM_STEP_ID", "0"},
    {"SLURM_PROCID", "6"},         {"SLURM_LOCALID", "0"},
    {"SLURM_NODEID", "3"},         {"SLURM_NTASKS", "7"},
    {"SLURM_STEP_NUM_TASKS", "7"}, {"SLURM_STEP_TASKS_PER_NODE", "2(x3),1"}};
// The environment of a script under `sbatch -n 7`.
const Environment kSbatch = {{"SLURM_JOB_ID", "1234"}, {"SLURM_PROCID", "0"},
                             {"SLURM_LOCALID", "0"},   {"SLURM_NODEID", "0"},
                             {"SLURM_NTASKS", "7"},    {"SLURM_TASKS_PER_NODE", "2(x3),1"}};

void expect_rank_info(const Environment& environment, const RankInfo& expected) {
  const std::optional<RankInfo> rank_info = rank_info_in(environment);
  ASSERT_TRUE(rank_info) << expected.launcher;
  EXPECT_EQ(rank_info->launcher, expected.launcher);
  EXPECT_EQ(rank_info->rank, expected.rank) << expected.launcher;
  EXPECT_EQ(rank_info->size, expected.size) << expected.launcher;
  EXPECT_EQ(rank_info->local_rank, expected.local_rank) << expected.launcher;
  EXPECT_EQ(rank_info->local_size, expected.local_size) << expected.launcher;
}

TEST(RankInfo, EveryLauncher) {
  expect_rank_info(kSkein, {3, 8, 3, 4, "skein"});
  EXPECT_EQ(rank_info_in(kSkein)->start_id, "20250102T030405-0a1b2c3d");
  EXPECT_EQ(rank_info_in(kSkein)->parent_pid, 0);
  EXPECT_EQ(rank_info_in(with(kSkein, {{"SKEIN_PARENT_PID", "77"}}))->parent_pid, 77);
  expect_rank_info(kTorchrun, {3, 4, 3, 4, "torchrun"});
  expect_rank_info(kTorchrunNodes, {7, 8, 3, 4, "torchrun"});
  expect_rank_info(kOpenMpi, {5, 6, 1, 2, "Open MPI"});
  expect_rank_info(kSlurm, {6, 7, 0, 1, "Slurm"});
  expect_rank_info(
      with(kSlurm, {{"SLURM_NODEID", "2"}, {"SLURM_PROCID", "5"}, {"SLURM_LOCALID", "1"}}),
      {5, 7, 1, 2, "Slurm"});
  // The step's number of tasks counts, not the job's.
  expect_rank_info(with(kSlurm, {{"SLURM_NTASKS", "64"}}), {6, 7, 0, 1, "Slurm"});
}

TEST(RankInfo, TheInnermostLauncherCounts) {
  const auto inside = [](Environment outer, const Environment& inner) {
    for (const auto& [name, value] : inner) outer[name] = value;
    return outer;
  };
  expect_rank_info(inside(kSlurm, kOpenMpi), {5, 6, 1, 2, "Open MPI"});
  expect_rank_info(inside(kSlurm, kTorchrunNodes), {7, 8, 3, 4, "torchrun"});
  expect_rank_info(inside(kSlurm, kSkein), {3, 8, 3, 4, "skein"});
  // A script that copies Slurm's variables to the names of torch is still under Slurm.
  expect_rank_info(with(kSlurm, {{"RANK", "6"}, {"WORLD_SIZE", "7"}, {"LOCAL_RANK", "0"}}),
                   {6, 7, 0, 1, "Slurm"});
}

TEST(RankInfo, NoLauncher) {
  EXPECT_FALSE(rank_info_in({}));
  EXPECT_FALSE(rank_info_in(kSbatch));
  EXPECT_FALSE(rank_info_in(with(kSlurm, {{"SLURM_STEP_NUM_TASKS", "1"}})));
  for (const char* step : {"4294967290", "4294967291"}) {  // salloc's shell, the batch script
    EXPECT_FALSE(rank_info_in(with(kSlurm, {{"SLURM_STEP_ID", step}}))) << step;
  }
  EXPECT_FALSE(rank_info_in({{"RANK", "0"}, {"WORLD_SIZE", "1"}}));
  EXPECT_FALSE(rank_info_in({{"RANK", "0"}}));
  EXPECT_FALSE(rank_info_in({{"SKEIN_START_ID", "mine"}}));
}

TEST(RankInfo, StartIdTellsStartsApartAndIsTheSameOnAllRanks) {
  const std::vector<Environment> starts = {
      kTorchrun,
      with(kTorchrun, {{"TORCHELASTIC_RESTART_COUNT", "1"}}),
      with(kTorchrun, {{"TORCHELASTIC_ERROR_FILE", "/tmp/t_c/none_d/attempt_0/3/error.json"}}),
      kTorchrunNodes,
      with(kTorchrunNodes, {{"MASTER_PORT", "29501"}}),
      with(kTorchrunNodes, {{"TORCHELASTIC_RUN_ID", "job-18"}}),
      with(kTorchrunNodes, {{"SLURM_RESTART_COUNT", "1"}}),
      with(kTorchrunNodes, {{"SKEIN_START_ID", "mine"}}),
      kOpenMpi,
      with(kOpenMpi, {{"PMIX_NAMESPACE", "2889678850"}}),
      with(kOpenMpi, {{"OMPI_MCA_orte_hnp_uri", "44093.0;tcp://127.0.0.1:34568"}}),
      with(kOpenMpi, {{"SKEIN_START_ID", "mine"}}),
      kSlurm,
      with(kSlurm, {{"SLURM_RESTART_COUNT", "1"}}),
      with(kSlurm, {{"SLURM_STEP_ID", "1"}}),
      with(kSlurm, {{"SLURM_JOB_ID", "1235"}}),
  };
  std::set<std::string> ids;
  for (const Environment& start : starts) {
    const std::string id = rank_info_in(start)->start_id;
    EXPECT_TRUE(ids.insert(id).second) << id;
    EXPECT_THAT(id, testing::MatchesRegex("[-A-Za-z0-9_]+"));
  }
  const auto id = [](const Environment& environment) {
    return rank_info_in(environment)->start_id;
  };
  EXPECT_EQ(id(kTorchrun),
            id(with(kTorchrun, {{"RANK", "1"},
                                {"LOCAL_RANK", "1"},
                                {"TORCHELASTIC_ERROR_FILE",
                                 "/tmp/torchelastic_a/none_b/attempt_0/1/error.json"}})));
  // On another machine the log folder has another name.
  EXPECT_EQ(id(kTorchrunNodes),
            id(with(kTorchrunNodes, {{"RANK", "1"},
                                     {"LOCAL_RANK", "1"},
                                     {"TORCHELASTIC_ERROR_FILE", "/tmp/y/z/attempt_0/1/e.json"}})));
  EXPECT_EQ(
      id(kOpenMpi),
      id(with(kOpenMpi, {{"OMPI_COMM_WORLD_RANK", "2"}, {"OMPI_COMM_WORLD_LOCAL_RANK", "0"}})));
  EXPECT_EQ(
      id(kSlurm),
      id(with(kSlurm, {{"SLURM_PROCID", "1"}, {"SLURM_NODEID", "0"}, {"SLURM_LOCALID", "1"}})));
  EXPECT_THAT(id(kSlurm), testing::StartsWith("Slurm-1234-0-"));
}

struct Mistake {
  Environment environment;
  std::vector<std::string> words;
};

TEST(RankInfo, MistakesNameVariableAndValue) {
  const Environment per_node = {{"RANK", "1"}, {"WORLD_SIZE", "4"}};  // PyTorchJob
  const std::string long_id(200, 'x');
  const Mistake mistakes[] = {
      {with(kSkein, {{"SKEIN_RANK", "three"}}), {"SKEIN_RANK", "\"three\"", "0 to 7"}},
      {with(kSkein, {{"SKEIN_RANK", "8"}}), {"SKEIN_RANK", "\"8\"", "0 to 7"}},
      {with(kSkein, {{"SKEIN_RANK", "-1"}}), {"SKEIN_RANK", "\"-1\""}},
      {with(kSkein, {{"SKEIN_RANK", "1 "}}), {"SKEIN_RANK", "\"1 \""}},
      {with(kSkein, {{"SKEIN_RANK", ""}}), {"SKEIN_RANK is not set"}},
      {with(kSkein, {{"SKEIN_SIZE", "0"}}), {"SKEIN_SIZE", "\"0\""}},
      {with(kSkein, {{"SKEIN_SIZE", "99999999999999999999"}}), {"SKEIN_SIZE"}},
      {with(kSkein, {{"SKEIN_LOCAL_SIZE", "9"}}), {"SKEIN_LOCAL_SIZE", "1 to 8"}},
      {with(kSkein, {{"SKEIN_LOCAL_RANK", "4"}}), {"SKEIN_LOCAL_RANK", "0 to 3"}},
      {with(kSkein, {{"SKEIN_START_ID", ""}}), {"SKEIN_START_ID is not set"}},
      {{{"SKEIN_RANK", "0"}},
       {"SKEIN_RANK is set and SKEIN_SIZE is not set: set all of", "or none"}},
      {{{"SKEIN_SIZE", "2"}}, {"SKEIN_SIZE is set and SKEIN_RANK is not set", "SKEIN_START_ID"}},
      {with(kSkein, {{"SKEIN_START_ID", ".."}}), {"SKEIN_START_ID", "\"..\""}},
      {with(kSkein, {{"SKEIN_START_ID", "a/b"}}), {"SKEIN_START_ID", "a/b"}},
      {with(kSkein, {{"SKEIN_START_ID", long_id}}), {"SKEIN_START_ID", "128"}},
      {with(kSkein, {{"SKEIN_PARENT_PID", "0"}}), {"SKEIN_PARENT_PID", "\"0\""}},
      {with(kTorchrun, {{"LOCAL_WORLD_SIZE", ""}}), {"LOCAL_WORLD_SIZE is not set", "torchrun"}},
      {with(kTorchrun, {{"RANK", "4"}}), {"RANK is \"4\"", "0 to 3"}},
      {with(kTorchrunNodes, {{"TORCHELASTIC_RUN_ID", "none"}}), {"RUN_ID", "--rdzv-id"}},
      {with(kTorchrunNodes, {{"TORCHELASTIC_MAX_RESTARTS", "3"}}), {"--max-restarts 0"}},
      {with(kOpenMpi, {{"OMPI_COMM_WORLD_SIZE", "six"}}), {"OMPI_COMM_WORLD_SIZE", "\"six\""}},
      {with(kOpenMpi, {{"PMIX_NAMESPACE", ""}, {"OMPI_MCA_ess_base_jobid", ""}}),
       {"PMIX_NAMESPACE", "SKEIN_START_ID"}},
      {with(kSlurm, {{"SLURM_PROCID", "7"}}), {"SLURM_PROCID", "\"7\"", "0 to 6"}},
      {with(kSlurm, {{"SLURM_STEP_ID", "x"}}), {"SLURM_STEP_ID", "\"x\""}},
      {with(kSlurm, {{"SLURM_NODEID", "4"}}), {"SLURM_STEP_TASKS_PER_NODE", "2(x3),1"}},
      {with(kSlurm, {{"SLURM_STEP_TASKS_PER_NODE", "2(x"}}), {"SLURM_STEP_TASKS_PER_NODE"}},
      {with(kSlurm, {{"SLURM_STEP_TASKS_PER_NODE", "0"}}), {"SLURM_STEP_TASKS_PER_NODE"}},
      {with(kSlurm, {{"SLURM_JOB_ID", ""}}), {"SLURM_JOB_ID is not set"}},
      {per_node, {"RANK is \"1\"", "WORLD_SIZE \"4\"", "machines", "SKEIN_RANK"}},
      {with(per_node, {{"LOCAL_RANK", "0"}}), {"RANK is \"1\"", "torchrun"}},
  };
  for (const Mistake& mistake : mistakes) {
    try {
      rank_info_in(mistake.environment);
      ADD_FAILURE() << "not refused: " << mistake.words.front();
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kUsage);
      for (const std::string& word : mistake.words) EXPECT_THAT(error.what(), HasSubstr(word));
    }
  }
}

TEST(RankInfo, LaunchWorkersAgreesWithTheLauncher) {
  const RankInfo rank_info = *rank_info_in(kSlurm);
  EXPECT_NO_THROW(check_workers(rank_info, 1, "1"));
  EXPECT_NO_THROW(check_workers(*rank_info_in(kTorchrun), 4, "1"));
  EXPECT_THROW(check_workers(rank_info, 4, "1"), Error);
  EXPECT_THROW(check_workers(rank_info, 1, "2"), Error);  // ranks, where supervisors were meant
  RankInfo of_a_supervisor = rank_info;
  of_a_supervisor.parent_pid = 7;
  EXPECT_NO_THROW(check_workers(of_a_supervisor, 1, "2"));
}

TEST(RankInfo, Folders) {
  EXPECT_EQ(rendezvous_folder("", "runs/a", "id"), "runs/a/rendezvous/id");
  EXPECT_EQ(rendezvous_folder("/shared/meet", "runs/a", "id"), "/shared/meet/id");
  EXPECT_EQ(rendezvous_folder("etcd://host:1/demo", "runs/a", "id"), "runs/a/rendezvous/id");
  EXPECT_EQ(rank_log("runs/a", 3), "runs/a/logs/rank-00003.log");
}

}  // namespace
}  // namespace skein
