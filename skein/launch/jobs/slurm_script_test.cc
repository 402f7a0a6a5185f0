#include "skein/launch/jobs/slurm_script.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "skein/base/error.h"
#include "tests/error_of.h"

namespace skein {
namespace {

using test::error_of;

using testing::HasSubstr;
using testing::Not;

SlurmJob job() {
  return {.name = "demo",
          .min_nodes = 2,
          .max_nodes = 2,
          .cpus_per_node = 8,
          .working_dir = "/shared/me",
          .run_dir = "/shared/me/runs/demo",
          .command = {"/opt/skein", "train", "/shared/me/run.toml"}};
}

TEST(SlurmScript, AsksForOneTaskANodeAndIsRequeued) {
  const std::string script = slurm_script(job());
  for (const char* line :
       {"#!/bin/bash\n", "#SBATCH --job-name=demo\n", "#SBATCH --nodes=2\n",
        "#SBATCH --ntasks-per-node=1\n", "#SBATCH --cpus-per-task=8\n", "#SBATCH --requeue\n",
        "#SBATCH --open-mode=append\n", "#SBATCH --signal=USR1@120\n",
        "#SBATCH --output=/shared/me/runs/demo/logs/slurm-%j.log\n",
        "--cpus-per-task=8 --wait=120 \\\n    /opt/skein train /shared/me/run.toml\n",
        "if [ \"$code\" = 75 ]"}) {
    EXPECT_THAT(script, HasSubstr(line));
  }
}

TEST(SlurmScript, ARangeOfNodesGoesOnWithFewer) {
  SlurmJob elastic = job();
  elastic.max_nodes = 4;
  const std::string script = slurm_script(elastic);
  EXPECT_THAT(script, HasSubstr("#SBATCH --nodes=2-4\n"));
  EXPECT_THAT(script, HasSubstr("#SBATCH --no-kill\n"));
  EXPECT_THAT(script, HasSubstr("--no-kill --wait=0"));
  EXPECT_THAT(script, HasSubstr("-lt 2 ]"));
}

TEST(SlurmScript, OneNodeNeedsNoSharedFolder) {
  SlurmJob alone = job();
  EXPECT_THAT(slurm_script(alone), HasSubstr("file system that all nodes share"));
  alone.min_nodes = alone.max_nodes = 1;
  EXPECT_THAT(slurm_script(alone), Not(HasSubstr("file system that all nodes share")));
}

TEST(SlurmScript, QuotesWhatAShellOrSbatchWouldDivide) {
  SlurmJob odd = job();
  odd.run_dir = "/shared/me/my runs/100%";
  odd.command = {"/opt/skein", "train", "it's; rm -rf $HOME"};
  const std::string script = slurm_script(odd);
  EXPECT_THAT(script, HasSubstr("--output=\"/shared/me/my runs/100%%/logs/slurm-%j.log\"\n"));
  EXPECT_THAT(script, HasSubstr("log='/shared/me/my runs/100%'/logs"));
  EXPECT_THAT(script, HasSubstr("train 'it'\\''s; rm -rf $HOME'\n"));
}

TEST(SlurmScript, RefusesWhatALineOfSbatchCannotHold) {
  for (const char* option : {"--comment=a\nrm -rf /", "--comment=\"", "--comment=\\"}) {
    SlurmJob odd = job();
    odd.options = {option};
    EXPECT_THAT(error_of([&] { slurm_script(odd); }), HasSubstr("a line of #SBATCH cannot hold"));
  }
}

TEST(SlurmScript, RunsOfASweepAreTasksOfAnArray) {
  SlurmJob sweep = job();
  sweep.tasks = {{"--set", "run.seed=1"}, {"--set", "run.seed=2"}};
  sweep.at_most = 1;
  const std::string script = slurm_script(sweep);
  EXPECT_THAT(script, HasSubstr("#SBATCH --array=0-1%1\n"));
  EXPECT_THAT(script, HasSubstr("--output=/shared/me/runs/demo/%4a/logs/slurm-%A_%a.log\n"));
  EXPECT_THAT(script, HasSubstr("  1) settings=(--set run.seed=2) ;;\n"));
  EXPECT_THAT(script, HasSubstr("/shared/me/run.toml \"${settings[@]}\"\n"));
  // The number of an array's last task is the array's own, which would requeue all of it.
  EXPECT_THAT(script, HasSubstr("job=${SLURM_ARRAY_JOB_ID}_$SLURM_ARRAY_TASK_ID\n"));
  EXPECT_EQ(sweep_run_dir(sweep.run_dir, 7), "/shared/me/runs/demo/0007");
}

TEST(SlurmScript, ReadsTimesAsSlurmWritesThem) {
  EXPECT_EQ(slurm_seconds("90"), 90 * 60);
  EXPECT_EQ(slurm_seconds("90:30"), 90 * 60 + 30);
  EXPECT_EQ(slurm_seconds("12:00:01"), 12 * 3600 + 1);
  EXPECT_EQ(slurm_seconds("2-12"), (2 * 24 + 12) * 3600);
  EXPECT_EQ(slurm_seconds("2-12:30"), (2 * 24 + 12) * 3600 + 1800);
  EXPECT_EQ(slurm_seconds("1-0:0:5"), 86'405);
  for (const char* wrong : {"", "1h", "-1", "1:2:3:4", "1-", "1-2:3:4:5", "1:", "1 2"}) {
    EXPECT_THAT(error_of([&] { slurm_seconds(wrong); }), HasSubstr("expected minutes")) << wrong;
  }
}

TEST(SlurmScript, RefusesATimeInWhichNothingIsDone) {
  SlurmJob hasty = job();
  hasty.time = "3";
  EXPECT_THAT(error_of([&] { slurm_script(hasty); }), HasSubstr("at least twice that"));
  hasty.time = "4";
  EXPECT_THAT(slurm_script(hasty), HasSubstr("#SBATCH --time=4\n"));
}

}  // namespace
}  // namespace skein
