#!/usr/bin/env bash
# A choice of the tests without the environment that the tests' harness makes, and under the limits that users have.
#
#   scripts/check_environment.sh            every setting that this machine lets one make
#   scripts/check_environment.sh SETTING…   some of them
#   scripts/check_environment.sh --list     their names
#
# What the harness makes for a test, and a user does not have:
#   a home folder, SKEIN_CACHE and TMPDIR of the test program's own (tests/test_home.h)
#   OMP_WAIT_POLICY=passive, so that threads do not spin (tests/testing.h)
#   standard output and error in files, where a user has a terminal or a pipe (tests/testing.h)
#   whoever runs it: in CI that is root, with umask 022, no limits, /proc, a writable /dev/shm, the C locale
# With SKEIN_TEST_BARE=1 it makes none of these but a folder for temporary files.
#
# Exit code 0: all passed; 1: one failed; 2: no such setting. What cannot be made here is named, and is no failure.
set -euo pipefail
cd "$(dirname "$0")/.."
build=$PWD/build

# PROGRAM TEST…: 50 tests, which take a minute on two idle cores. Training and resuming, alone and with workers; saves
# that fail; data; mistakes; reports.
choice=(
  "full_disk_test FullDisk.WhileSaving FullDisk.ForTheMetrics"
  "resume_test Resume.ConstantsThatVanishInFp32AreRefused Resume.TwoRunsDoNotShareAFolderOfCheckpoints
   Resume.FindsACheckpointThatWasBeingReplaced ResumePath.TakesARun"
  "run_record_test RunRecord.ALossThatIsNotFinite RunRecord.AProcessThatWasKilled RunRecord.AKilledWorker
   RunRecord.ASecondProcessWritesNothingIntoTheFirstOnesRun
   RunRecord.TheFirstLineSaysWhereTheRunIsAndWhetherItIsNew"
  "supervised_worker_test SupervisedWorker.ALauncherStartsItInstead SupervisedWorker.AMistakeEndsTheRunAtOnce"
  "parallel_failure_test ParallelFailure.GoesOnFromMemoryAndLosesAFewMilliseconds"
  "moved_run_test MovedRun.OfAnOlderVersionIsRefusedRatherThanBegunAnew MovedRun.FindsItsCorporaBesideIt
   MovedRun.TellsWhereACorpusIsMissingOnce"
  "best_checkpoint_test BestCheckpoint.StaysBesideTheNewestAndIsMarked BestCheckpoint.RefusesWhatCannotBeWatched"
  "generate_test Generate.PromptsMaySpellSpecialTokens Generate.RefusesPromptsThatAreTooLongOrEmpty
   Generate.NeverDrawsARowThatOnlyPadsTheVocabulary SpecialTokens.OfTextsAreCharactersOrTokensAsTheConfigurationSays
   Generate.TakesItsDefaultsFromTheFolderAndAnExportKeepsThem"
  "bad_input_test BadInput.ExportToAFolderThatIsThere BadInput.VocabularySizesThatTheTextDoesNotGive
   BadInput.AnotherConfigurationThanTheCheckpoints BadInput.Tokenizer BadInput.RunFolderInUse
   BadInput.HuggingFaceFolder"
  "command_line_test CommandLine.AFailureIsExitCode1AndOneLine CommandLine.ReportsARun CommandLine.PrintsTheVersion
   CommandLine.SetTakesOneValueWhereverItStands CommandLine.AFolderIsTheConfigurationInIt
   CommandLine.KeysOfTheConfigurationAreFoundBehindDashes
   CommandLine.AWrongCommandLineIsExitCode2AndSaysWhatWasMeant"
  "data_commands_test DataCommands.RulesAreListedAsSet DataCommands.SourcesAreFoundFromElsewhere
   DataCommands.AnEvaluationSetMayBeAFolderWithAColumnOfItsOwn DataCommands.AnInputThatChangedIsSaidToHave
   DataCommands.CleanShowsItsReportWhereNothingStays DataCommands.OptionsThatWouldDoNothingAreRefused
   DataCommands.AReportThatCannotBeWrittenIsRefusedBeforeTheWork DataCommands.DedupCountsInvalidLinesAsIngestDoes
   DataCommands.ReportsReplaceNothingButReports DataCommands.AStopSaysThatTheSameCommandGoesOn
   DataCommands.TextsThatCannotBeTakenAreRefused"
  "validation_test Validation.AloneNeedsASetAndOneMachine Validation.BeforeTrainingIsStepZeroAndChangesNoStep"
)

# NAME, how the tests are run under it: a function of that name below
settings=(
  "bare          nothing of the harness, no home folder, no variable but PATH"
  "other_user    as a user who owns nothing"
  "umask_077     files for nobody else"
  "small_files   ulimit -f: files of 64 MB"
  "few_files     ulimit -n: 320 open files, what a few workers need"
  "less_address  ulimit -v: 16 GB of addresses"
  "small_stack   ulimit -s: 128 kB"
  "no_proc       an empty /proc"
  "readonly_shm  /dev/shm that nobody can write"
  "small_shm     /dev/shm of 64 kB"
  "turkish       a locale with another rule for i and I, and a comma in numbers"
  "latin_1       a locale that is not UTF-8"
  "cpu_quota     a control group with the time of 1.5 cores"
  "memory_limit  a control group with 3 GB of memory"
)

tmp=
group_folders=()
clean_up() {
  local folder
  for folder in "${group_folders[@]}"; do rmdir "$folder" 2>/dev/null || echo "left over: $folder" >&2; done
  [ -z "$tmp" ] || rm -rf "$tmp"
}
trap clean_up EXIT
tmp=$(mktemp -d "${TMPDIR:-/tmp}/skein-environment-XXXXXX")
chmod 711 "$tmp"

# Each setting runs its arguments. It returns 3, and says why, where this machine does not let it.
not_here() { echo "not here: $*"; return 3; }
needs_root() { [ "$(id -u)" = 0 ] || not_here "needs root"; }
with_mount() { # OPTIONS PLACE COMMAND…
  needs_root || return
  unshare -m true 2>/dev/null || not_here "no mounts may be made" || return
  # shellcheck disable=SC2016  # for the inner shell
  unshare -m bash -c 'mount -t tmpfs -o "$0" tmpfs "$1" && shift && exec "$@"' "$@"
}
with_locale() { # NAME CHARMAP COMMAND…
  local name=$1.$2
  [ -f "/usr/share/i18n/locales/$1" ] && command -v localedef >/dev/null ||
    not_here "no sources of locales: apt install locales" || return
  [ -d "$tmp/locales/$name" ] || { mkdir -p "$tmp/locales"; localedef -i "$1" -f "$2" "$tmp/locales/$name"; }
  "$3" "$4" LOCPATH="$tmp/locales" LC_ALL="$name" LANG="$name" "${@:5}"  # behind env -i
}
# Makes a control group, of v2 or v1, and runs the command in it.
with_group() { # CONTROLLER FILE_OF_V2 TEXT FILE_OF_V1 TEXT COMMAND…
  local controller=$1 folder file=$2 text=$3
  needs_root || return
  if [ -d "/sys/fs/cgroup/$controller" ]; then
    folder=/sys/fs/cgroup/$controller/skein-check-$$ file=$4 text=$5
  else
    folder=/sys/fs/cgroup/skein-check-$$
    grep -qw "$controller" /sys/fs/cgroup/cgroup.subtree_control 2>/dev/null ||
      not_here "no control groups of $controller may be made" || return
  fi
  if [ ! -d "$folder" ]; then
    mkdir "$folder" 2>/dev/null || not_here "no control groups may be made" || return
    group_folders+=("$folder")
  fi
  echo "$text" >"$folder/$file"
  # shellcheck disable=SC2016  # for the inner shell
  bash -c 'echo $$ >"$0/cgroup.procs" && exec "$@"' "$folder" "${@:6}"
}

bare() { "$@"; }
other_user() {
  needs_root || return
  chown -R 65533:65533 "$tmp/tests"
  setpriv --reuid=65533 --regid=65533 --clear-groups test -x "$build/skein" ||
    not_here "another user may not read $build" || return
  setpriv --reuid=65533 --regid=65533 --clear-groups "$@"
}
umask_077() { (umask 077 && "$@"); }
small_files() { (ulimit -f 65536 && "$@"); }
few_files() { (ulimit -n 320 && "$@"); }
less_address() { (ulimit -v 16777216 && "$@"); }
small_stack() { (ulimit -S -s 128 && ulimit -H -s 128 && "$@"); }
# The program alone: the tests themselves look at processes there.
no_proc() {
  with_mount size=64k /proc true || return
  cat >"$tmp/no_proc" <<END
#!/bin/bash
exec unshare -m bash -c 'mount -t tmpfs -o size=64k tmpfs /proc && exec "\$0" "\$@"' '$build/skein' "\$@"
END
  chmod 755 "$tmp/no_proc"
  "$1" "$2" SKEIN_TEST_PROGRAM="$tmp/no_proc" "${@:3}"  # behind env -i
}
readonly_shm() { with_mount ro /dev/shm "$@"; }
small_shm() { with_mount size=64k /dev/shm "$@"; }
turkish() { with_locale tr_TR ISO-8859-9 "$@"; }
latin_1() { with_locale de_DE ISO-8859-1 "$@"; }
cpu_quota() { with_group cpu cpu.max "150000 100000" cpu.cfs_quota_us 150000 "$@"; }
memory_limit() { with_group memory memory.max 3G memory.limit_in_bytes 3G "$@"; }

names=()
for setting in "${settings[@]}"; do names+=("${setting%% *}"); done
case ${1:-} in
  --list) printf '%s\n' "${settings[@]}"; exit ;;
  '') set -- "${names[@]}" ;;
esac
for name; do
  [[ " ${names[*]} " == *" $name "* ]] ||
    { echo "check_environment.sh: there is no setting '$name': expected some of ${names[*]}" >&2; exit 2; }
done

cd "$build"  # as ctest does
failed=() left_out=()
for name; do
  passed=0
  for row in "${choice[@]}"; do
    mapfile -t words < <(xargs -n 1 <<<"$row")
    rm -rf "$tmp/tests"
    mkdir "$tmp/tests"
    filter=$(IFS=: && echo "${words[*]:1}")
    code=0
    "$name" env -i PATH="$PATH" SKEIN_TEST_BARE=1 TEST_TMPDIR="$tmp/tests" \
      "$build/${words[0]}" --gtest_filter="$filter" --gtest_brief=1 >"$tmp/output" 2>&1 || code=$?
    if [ "$code" = 3 ] && grep -q '^not here: ' "$tmp/output"; then
      left_out+=("$name ($(sed -n 's/^not here: //p' "$tmp/output"))")
      continue 2
    fi
    passed_now=$(sed -n 's/^\[  PASSED  \] \([0-9]*\) tests\{0,1\}\.$/\1/p' "$tmp/output")
    passed=$((passed + ${passed_now:-0}))
    [ "$code" = 0 ] && [ "${passed_now:-0}" = $((${#words[@]} - 1)) ] && continue
    failed+=("$name: ${words[0]}")
    sed "s/^/$name: /" "$tmp/output"
  done
  if [ "$name" = cpu_quota ] && [ "$(nproc)" -gt 1 ]; then
    cpu_quota ./skein check --json >"$tmp/output" 2>&1 || code=$?  # of other rows of the check, too
    grep -q 'allows the time of 1.5' "$tmp/output" ||
      { failed+=("$name: skein check does not say so"); sed "s/^/$name: /" "$tmp/output"; }
  fi
  printf '%-14s %s tests passed\n' "$name" "$passed"
done
[ ${#left_out[@]} = 0 ] || printf 'not made here: %s\n' "${left_out[@]}"
if [ ${#failed[@]} -gt 0 ]; then
  printf 'FAILED under %s\n' "${failed[@]}"
  exit 1
fi
