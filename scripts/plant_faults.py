#!/usr/bin/env python3
"""Plants faults into the program, one at a time, and sees whether the test that is named for each
fails: a test that passes whatever the program does is no test.

  scripts/plant_faults.py [NAME…]       plants these, or all of them (the first time it compiles for
                                        many minutes, later ccache has most of it)
  scripts/plant_faults.py --list        says which there are
  scripts/plant_faults.py --folder DIR  works in DIR, which must not be there yet, instead of in
                                        build-faults

It works on what is committed, in a git worktree of its own, without CUDA, and removes that in the end.
A test that hangs or dies has caught the fault, too. Ends with 1 if a fault was missed or did not
compile.
"""
import argparse
import os
import re
import signal
import subprocess
import sys
import time
from collections import namedtuple
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SECONDS = 120  # for a test

# `old` stands once in `file` and becomes `new`; then `test` of the room's unit tests fails.
Fault = namedtuple("Fault", "name file old new test")
FAULTS = [
    # ---- passes ----
    Fault("recompute_keeps_the_wrong_values", "skein/passes/recompute.cc",
          ".scope != node.scope) crossing_", ".scope == node.scope) crossing_",
          "Recompute.FullKeepsOnlyWhatLeavesTheLayer"),
    Fault("no_gather_for_backward", "skein/passes/zero.cc",
          "if (found == used_.end()) return;",
          "if (found == used_.end() || place.first == Phase::kBackward) return;",
          "Zero.WeightsAreGatheredOnceAScopeAndPhase"),
    Fault("reduced_before_the_last_sum", "skein/passes/zero.cc",
          "of_place = std::max(of_place, i);", "of_place = std::min(of_place, i);",
          "Zero.SumsAreReducedWhenTheirScopeIsDone"),
    Fault("gradient_of_a_token_block_comes_late", "skein/passes/hoist_transient.cc",
          "emit(consumer, Phase::kForward)", "emit(consumer, Phase::kBackward)",
          "HoistTransient.EachTokenBlockIsFollowedByItsGradient"),
    Fault("a_result_lies_on_what_it_reads", "skein/passes/plan_memory.cc",
          "interval.first <= last && first <= interval.last",
          "interval.first <= last && first < interval.last",
          "CheckMemory.AcceptsWhatIsPlanned"),
    Fault("a_larger_result_lies_on_what_it_reads", "skein/passes/plan_memory.cc",
          "interval.first <= last && first <= interval.last",
          "interval.first < last && first <= interval.last",
          "PlanMemory.NoValueIsOverwrittenWhileItIsNeeded"),
    Fault("parts_lie_on_each_other", "skein/passes/storage.cc",
          "place.col + parent.col}", "place.col}",
          "PlanMemory.PartsOfALinearLieSideBySide"),
    Fault("the_newest_sum_is_awaited_first", "skein/passes/overlap.cc",
          "place_early(waiting.front().wait, after);", "place_early(waiting.back().wait, after);",
          "Overlap.SumsStartEarlyAndTwoAreUnderWay"),
    Fault("a_sum_starts_before_its_last_gradient", "skein/passes/overlap.cc",
          "early_.push_back({after, index});", "early_.push_back({after - 1, index});",
          "Overlap.SumsStartEarlyAndTwoAreUnderWay"),
    # ---- collectives ----
    Fault("another_tree_of_sums", "skein/comm/tree_sum.cc",
          "const size_t left = std::bit_ceil(n) / 2;\n    subtree(first",
          "const size_t left = n - n / 2;\n    subtree(first",
          "TreeSum.EqualsGapDoublingForEveryNumberOfTermsAndThreads"),
    Fault("halves_are_terms_of_their_own", "skein/comm/gloo/gloo_communicator.cc",
          "pairs_(pairs_of_group(leaves, size()))", "pairs_(pairs_of_group(0 * leaves, size()))",
          "Ranks/EverySize.SumsOfBranches/2"),
    Fault("the_first_blocks_are_halved", "skein/comm/branches.h",
          "return {full_ - halved_, halved_};", "return {0, halved_};",
          "Branches.AddUpToTheTreeOfAllLeaves"),
    Fault("the_first_ranks_have_the_halves", "skein/comm/branches.cc",
          "if (rank < whole) return {rank * size_, size_};", "if (rank < 0) return {rank * size_, size_};",
          "Branches.CoverTheLeavesInOrderAndAreAsEvenAsWholeBranchesCanBe"),
    Fault("no_wait_for_the_second_phase", "skein/comm/gloo/gloo_communicator.cc",
          "  await(pending, pending.second_receives, false, deadline);\n", "",
          "*/EverySize.EveryKindDtypeAndShape/*"),
    Fault("the_sum_lies_at_the_wrong_share", "skein/comm/gloo/gloo_communicator.cc",
          "collective.kind == Kind::kAllReduce ? begin : 0)", "begin)",
          "*/EverySize.EveryKindDtypeAndShape/*"),
    Fault("packed_as_if_shares_were_equal", "skein/comm/gloo/packed_parts.cc",
          "at += share_of(collective, part, size, rank).bytes;",
          "at += share_of(collective, part, size, 0).bytes;",
          "*/EverySize.EveryKindDtypeAndShape/*"),
    Fault("strangers_take_part", "skein/comm/gloo/proof.cc",
          "expected_.size()) == 0;", "expected_.size()) < 256;",
          "Proof.WhoDoesNotKnowTheSecretIsNamed"),
    # ---- the store ----
    Fault("records_of_strangers_count", "skein/store/signed_store.cc",
          "return difference == 0 ?", "return difference < 256 ?",
          "Kinds/SignedStores.RecordsThatTheRunDidNotWriteAreNone/*"),
    Fault("a_signature_is_good_under_every_name", "skein/store/signed_store.cc",
          '{"record", place_, name, value}', '{"record", place_, "", value}',
          "Kinds/SignedStores.RecordsThatTheRunDidNotWriteAreNone/*"),
    Fault("a_key_is_created_twice", "skein/store/etcd_client.cc",
          '{"create_revision", "0"}', '{"version", "0"}',
          "Kinds/Stores.ARecordIsCreatedOnceWhoeverTries/etcd"),
    Fault("a_generation_that_vanished_is_forgotten", "skein/supervise/shared_store.cc",
          "newest_->number > number)", "newest_->number < 0)",
          "Kinds/SharedStore.AGenerationThatVanishedIsAnError/*"),
    Fault("the_ragged_end_is_a_full_share", "skein/comm/collective.cc",
          "std::min(begin + share, part.elements)", "begin + share",
          "Collective.SharesEndWithTheTensor"),
    # ---- checkpoints ----
    Fault("a_box_that_is_too_large", "skein/checkpoint/boxes.cc",
          "std::min(box.shape.dim(dim) - index, ", "std::min(box.shape.dim(dim), ",
          "BoxesOfRange.AgreeWithCountingElementByElement"),
    Fault("renamed_before_it_is_durable", "skein/checkpoint/checkpoint_save.cc",
          "  job.ops.sync_folder(partial);\n", "",
          "CheckpointCrash.NothingIsUnsyncedWhenTheFolderIsRenamed"),
    Fault("a_rank_says_so_before_its_folder_is_durable", "skein/checkpoint/checkpoint_save.cc",
          "      job.ops.sync_folder(shared.partial());\n", "",
          "SharedSave.EveryRankHasSyncedItsFilesWhenItSaysSo"),
    Fault("files_of_a_save_are_not_synced", "skein/checkpoint/safetensors_writer.cc",
          "  ops_.sync(file_.get(), path_);\n", "",
          "SharedSave.EveryRankHasSyncedItsFilesWhenItSaysSo"),
    Fault("committed_without_the_last_part", "skein/checkpoint/shared_save.cc",
          "if (num_missing == 0) break;", "if (num_missing <= 1) break;",
          "SharedSave.ARankThatDoesNotComeIsNamedWithinTheDeadline"),
    Fault("one_checkpoint_too_many_removed", "skein/checkpoint/checkpoint_folder.cc",
          "static_cast<size_t>(policy.keep)", "static_cast<size_t>(policy.keep - 1)",
          "Retention.KeepsTheNewestAndThePermanent"),
    Fault("another_timeline_is_removed", "skein/checkpoint/timeline.cc",
          "  return a.run_id == b.run_id || ", "  return !a.run_id.empty() || ",
          "Timeline.OldCheckpointsAreOfTheFirst"),
    Fault("stored_from_the_wrong_place", "skein/checkpoint/stored_part.cc",
          "  if (split) part.local_begin = part.range.begin;\n", "",
          "StoredPart.EveryElementOnceWhateverThePlacement"),
    # ---- lanes ----
    Fault("labels_are_the_tokens", "skein/data/packer.cc",
          "row.labels[i - 1] = row.tokens[i];", "row.labels[i] = row.tokens[i];",
          "Packer.RowsAreThoseOfTheReference"),
    Fault("a_label_beyond_the_document", "skein/data/packer.cc",
          "document_mask ? kNoLabel : row.tokens[t];", "row.tokens[t];",
          "Packer.RowsAreThoseOfTheReference"),
    Fault("a_sample_of_the_next_step", "skein/data/packer.cc",
          "step - states_step - 1", "step - states_step",
          "BatchOfStep.IsTheBatchThatTrainingSees"),
    Fault("the_state_before_the_batch", "skein/data/loader.cc",
          "packer_.fill(slot.batch);\n      slot.batch.step = next_step_;\n"
          "      packer_.states(slot.states_after);",
          "packer_.states(slot.states_after);\n      packer_.fill(slot.batch);\n"
          "      slot.batch.step = next_step_;",
          "LoaderTest.StatesAreThoseOfTheBatchGivenNotOfWhatWasMadeAhead"),
    Fault("every_segment_ends_a_document", "skein/data/lane.cc",
          "if (segment.ends_document && ", "if (",
          "Lane.DocumentsThatAreCutAreReadWholeAndEndOnce"),
    Fault("two_epochs_in_one_order", "skein/data/blocks.cc",
          "static_cast<uint32_t>(epoch(position))", "static_cast<uint32_t>(epoch(position) / 2)",
          "BlockOrder.IsUniformAndDependsOnSeedAndEpoch"),
    # ---- the update ----
    Fault("a_norm_counts_a_shared_parameter_twice", "skein/optim/update.cc",
          "options_.stage < shared->second", "options_.stage != shared->second",
          "Update.TheLowerOfTwoStagesCountsWhatBothHave"),
    Fault("the_rate_lags_a_step", "skein/optim/learning_rate.cc",
          "static_cast<double>(step) / ", "static_cast<double>(step - 1) / ",
          "LearningRate.FollowsTheRecipeOfTheSeeds"),
    Fault("bias_corrected_for_the_next_step", "skein/ops/adamw/adamw_cpu.cc",
          "std::pow(beta1, step)", "std::pow(beta1, step + 1)",
          "Adamw.CorrectsTheBiasOfTheFirstSteps"),
    Fault("the_step_goes_uphill", "skein/ops/adamw/adamw_cpu.cc",
          "hn::NegMulAdd(step_size", "hn::MulAdd(step_size",
          "Adamw.MeetsItsReference"),
    Fault("tiles_count_on_what_nobody_wrote", "skein/ops/attention/cpu/attention_tile-inl.h",
          "std::fill(panel + steps * kBlock, panel + round_up(steps, kStepMultiple) * kBlock, 0u);",
          "std::fill(panel + steps * kBlock, panel + steps * kBlock, 0u);",
          "Emulated/AttentionTiles.MatchTheDefinition/AnyHost"),
    Fault("a_group_of_queries_begins_with_another_block",
          "skein/ops/attention/cpu/attention_backward-inl.h",
          "scratch.q_rows + begin * panel", "scratch.q_rows + 0 * panel",
          "Emulated/AttentionTiles.MatchTheDefinition/AnyHost"),
    Fault("a_group_of_keys_begins_with_another_block",
          "skein/ops/attention/cpu/attention_backward-inl.h",
          "scratch.k_columns + group_keys + seen.begin * kBlockWords",
          "scratch.k_columns + group_keys + 0 * seen.begin",
          "Emulated/AttentionTiles.MatchTheDefinition/AnyHost"),
    # ---- the supervisors' protocol ----
    Fault("silence_is_taken_for_the_end", "skein/supervise/membership.cc",
          "is_silent(member.host, options_.fence)", "is_silent(member.host)",
          "Hundreds/FaultSchedules.KeepTheInvariants/0"),
    Fault("nobody_needs_to_say_that_it_ended", "skein/supervise/membership.cc",
          "(any_says_so && all_or_silent)", "(all_or_silent)",
          "Hundreds/FaultSchedules.KeepTheInvariants/0"),
    Fault("workers_are_permitted_for_ever", "skein/supervise/supervisor.cc",
          "return last_good_ + static_cast<Millis>(share);",
          "return last_good_ + 100 * static_cast<Millis>(share);",
          "Hundreds/FaultSchedules.KeepTheInvariants/0"),
    Fault("workers_that_do_not_end_are_not_killed", "skein/supervise/supervisor.cc",
          "if (now < *kill_at_) return;", "return;",
          "Hundreds/FaultSchedules.KeepTheInvariants/0"),
    Fault("the_end_of_an_earlier_generation_counts", "skein/supervise/membership.cc",
          "record->ended >= generation);", "record->ended + 1 >= generation);",
          "Hundreds/FaultSchedules.KeepTheInvariants/0"),
    Fault("an_answer_of_the_store_is_forgotten", "skein/supervise/supervisor.cc",
          "creating_ = false;\n  if (created", "if (created",
          "Hundreds/FaultSchedules.KeepTheInvariants/0"),
    Fault("it_says_too_early_that_workers_ended", "skein/supervise/supervisor.cc",
          "note_ending(ending, message);\n  settle_at_.reset();",
          "note_ending(ending, message);\n  all_ended();\n  settle_at_.reset();",
          "Hundreds/FaultSchedules.KeepTheInvariants/0"),
    Fault("an_outage_of_the_store_is_silence", "skein/supervise/membership.cc",
          "std::min(now - *updated_, kLongestGap)", "(now - *updated_)",
          "Lost.IsNotAHostThatNobodyCouldHear"),
    Fault("old_records_are_believed", "skein/supervise/membership.cc",
          "view.newest->number < view_.newest->number", "false",
          "Membership.NothingOlderThanBeforeIsBelieved"),
    Fault("no_new_step_counts_as_progress", "skein/supervise/membership.cc",
          "next.best_step > last.best_step", "next.best_step >= last.best_step",
          "Failures.TheSameOneThreeTimesInARowEndsTheRun"),
    Fault("a_sick_host_trains", "skein/supervise/membership.cc",
          "return host.sick.empty() && host.checked", "return host.checked",
          "Hundreds/FaultSchedules.KeepTheInvariants/0"),
    Fault("a_check_that_hangs_is_waited_for", "skein/supervise/supervisor_health.cc",
          "if (now < *check_ends_at_) return;", "return;",
          "Hundreds/FaultSchedules.KeepTheInvariants/0"),
    Fault("wrong_bits_are_always_an_accident", "skein/supervise/supervisor_health.cc",
          "is_broken_ = ++times_wrong_ >= kTooOftenWrong || soon;", "times_wrong_ += soon ? 2 : 1;",
          "Supervised.WrongBitsThatComeBackSoonLeaveTheHostOutForGood"),
    Fault("the_third_wrong_bits_are_an_accident", "skein/supervise/supervisor_health.cc",
          "++times_wrong_ >= kTooOftenWrong || soon;", "(++times_wrong_, soon);",
          "Supervised.WrongBitsAreAnAccidentUntilTheyComeBack"),
    Fault("half_of_the_copies_are_a_majority", "skein/train/state_check.cc",
          "2 * votes[hashes[static_cast<size_t>(rank)]] <= ranks.size()",
          "2 * votes[hashes[static_cast<size_t>(rank)]] < ranks.size()",
          "Suspects.AreAllButTheMajority"),
    Fault("copies_are_sought_on_all_ranks", "skein/train/state_check.cc",
          "if ((axes >> axis & 1U) != 0) coordinates", "if ((axes >> axis & 1U) <= 1) coordinates",
          "Suspects.AreSoughtAmongThoseThatHoldCopies"),
    Fault("copies_are_not_compared", "skein/train/state_check.cc",
          "if (tensors_[pieces_[i].tensor].copied_over == axes) hashes", "if (axes == 0) hashes",
          "StateCheck.CopiesThatDifferAreFoundOnAllRanks"),
    Fault("loss_and_norms_are_not_compared", "skein/train/state_check.cc",
          "xxh3_128(std::as_bytes(told))", "xxh3_128(std::as_bytes(told.first(told.size() / 2)))",
          "StateCheck.WhatRanksAreToldIsComparedAsWell"),
    Fault("what_changes_between_updates_is_taken_on", "skein/train/state_check.cc",
          "if (changed != left_.end()) {", "if (left_.empty()) {",
          "StateCheck.WhatChangesBetweenUpdatesIsFoundWhereItChanged"),
    Fault("what_a_check_finds_counts_as_wrong_bits", "skein/supervise/membership_verdict.cc",
          "cause->sick == cause->message", "!cause->sick.empty()",
          "Supervised.AFailedCheckBesideWrongBitsIsNoSecondTime"),
    Fault("a_spare_does_not_count", "skein/supervise/membership_verdict.cc",
          "&& !has_spare(*cause)", "",
          "Supervised.WrongBitsThatComeBackDoNotEndARunThatHasASpare"),
    Fault("a_firewall_ends_a_machine", "skein/supervise/membership.cc",
          "has_refused(host) ? options_.refused_silence", "has_refused(host) ? 0",
          "Membership.AHostWhoseMachineRefusesIsWaitedForOnlyAMomentUntilItSpeaksAgain"),
    Fault("a_stop_between_generations_is_lost", "skein/launch/worker_orders.cc",
          'signals.forget();\n  if (!send(last.orders, "ready")) return std::nullopt;',
          'if (!send(last.orders, "ready")) return std::nullopt;\n  ::sleep(1);\n  signals.forget();',
          "WorkerOrders.AStopOfTheOldGenerationIsForgottenOneOfTheNextIsNot"),
    Fault("nobody_waits_for_a_check", "skein/supervise/membership.cc",
          "if (waited < options_.wait_for_checks &&", "if (false && ",
          "Health.ACheckThatIsUnderWayIsWaitedForAndThenNotAnyMore"),
    Fault("training_stops_again_and_again_for_a_spare", "skein/supervise/supervisor.cc",
          "options_.regroup << doublings", "options_.regroup << (0 * doublings)",
          "Simulation.ASpareWhoseCheckFlapsCostsLittle"),
    Fault("stops_that_gained_nobody_are_not_counted", "skein/supervise/membership.cc",
          "(was_regrouped(view_, last) ? 1 : 0)", "0",
          "Simulation.ASpareWhoseCheckFlapsCostsLittle"),
    Fault("a_generation_stops_before_its_first_step", "skein/supervise/supervisor.cc",
          "if (step > best_step_ && ", "if (",
          "Supervised.ANewcomerIsTakenInAfterAStep"),
    Fault("a_check_that_passes_once_is_forgiven", "skein/supervise/supervisor_health.cc",
          "    if (was_sick) say(", "    times_sick_ = 0;\n    if (was_sick) say(",
          "Supervised.ACheckThatPassesEveryOtherTimeIsMadeEverLessOftenAllTheSame"),
    Fault("a_check_that_could_not_be_made_has_failed", "skein/health/check.cc",
          "return error.code() == ErrorCode::kNoSpace ||", "return false &&",
          "Health.WhatCouldNotBeCheckedIsDoubtful"),
    Fault("a_check_that_cannot_end_is_waited_for", "skein/launch/host_check.cc",
          "  process_->let_go();\n", "",
          "RealCheck.OneThatTheKernelCannotEndIsNotWaitedFor"),
    Fault("a_wrong_product_is_right", "skein/health/product_check.cc",
          "if (wrong < 0) continue;", "continue;",
          "ProductCheck.OneWrongBitIsFoundAndItsPlaceNamed"),
    Fault("a_hang_is_not_noticed", "skein/supervise/supervisor.cc",
          "now - worker.changed < options_.hang", "true",
          "Supervised.OneThatHangsIsKilledAfterItsStacks"),

    # ---- record ----
    Fault("what_a_failure_cut_counts_as_recovery", "skein/record/time_ledger.cc",
          "charge(known, phase_", "charge(record.at, phase_",
          "TimeLedger.AFailureIsDetectedRecoveredFromAndItsStepsAreRedone"),
    Fault("the_wall_clock_tells_durations", "skein/record/time_ledger.cc",
          "moment.clock >= found->second.newest) {\n", "false) {\n",
          "TimeLedger.AWallClockThatIsSetMovesNothing"),
    Fault("lost_steps_keep_their_waiting", "skein/record/time_ledger.cc",
          "of(TimePart::kDataWait) -= lost.data_wait;", "",
          "TimeLedger.ThePartsAddUpToTheWhole"),
    Fault("a_leader_tells_from_the_beginning", "skein/record/event_command.cc",
          "if (takes_over) go_on_from_what_was_told();", "",
          "EventCommand.AnotherMachineGoesOnFromWhatWasTold"),
]


def target_of(fault):
    return f"skein_{fault.file.split('/')[1]}_test"


def call(*command, **options):
    """What it printed; fails with that."""
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **options)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(command)}:\n{done.stdout[-3000:]}")
    return done.stdout


def build(folder, targets):
    call("cmake", "--build", "build", "-j", str(os.cpu_count()), "--target", *targets, cwd=folder)


def passes(folder, target, tests):
    """Whether there are such tests, and all of them pass in time."""
    command = [f"build/{target}", "--gtest_filter=" + tests]
    test = subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                            text=True, errors="replace", start_new_session=True)
    try:
        output, _ = test.communicate(timeout=SECONDS)
    except subprocess.TimeoutExpired:
        return False
    finally:  # with all processes that it started
        try:
            os.killpg(test.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        test.wait()
    return test.returncode == 0 and re.search(r"\[  PASSED  \] [1-9]", output) is not None


def plant(folder, fault):
    """Prints a line; whether the fault was caught."""
    start = time.monotonic()
    path = folder / fault.file
    text = path.read_text()
    path.write_text(text.replace(fault.old, fault.new))
    try:
        build(folder, [target_of(fault)])
        found = "MISSED" if passes(folder, target_of(fault), fault.test) else "caught"
    except RuntimeError as error:
        found = "BROKEN"
        print(error)
    finally:
        path.write_text(text)
    seconds = time.monotonic() - start
    print(f"{found}  {fault.name}  by {fault.test}  ({seconds:.0f} s)", flush=True)
    return found == "caught"


def plant_all(folder, faults):
    """In a worktree that was just made; how many were caught."""
    (folder / ".deps").symlink_to(ROOT / ".deps")
    for fault in faults:
        times = (folder / fault.file).read_text().count(fault.old)
        if times != 1:
            raise RuntimeError(f"{fault.name}: in {fault.file} its text stands {times} times, expected once")
    tests = {}  # by target
    for fault in faults:
        tests.setdefault(target_of(fault), {})[fault.test] = None
    call("cmake", "--preset", "release", "-DSKEIN_CUDA=OFF", cwd=folder)
    build(folder, tests)
    for target, names in tests.items():
        for name in names:
            if not passes(folder, target, name):
                raise RuntimeError(f"{name} of {target} does not pass without a fault, or is not there")
    return sum([plant(folder, fault) for fault in faults])


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--folder", type=Path, default=ROOT / "build-faults")
    options = parser.parse_args()
    unknown = set(options.names) - {fault.name for fault in FAULTS}
    if unknown:
        parser.error(f"no such fault: {', '.join(sorted(unknown))}")
    faults = [fault for fault in FAULTS if not options.names or fault.name in options.names]
    if options.list:
        for fault in faults:
            print(f"{fault.name}  {fault.file}  by {fault.test}")
        return 0
    start = time.monotonic()
    folder = options.folder.resolve()
    try:
        call("git", "-C", str(ROOT), "worktree", "add", "--detach", str(folder), "HEAD")
        try:
            num_caught = plant_all(folder, faults)
        finally:
            call("git", "-C", str(ROOT), "worktree", "remove", "--force", str(folder))
    except RuntimeError as error:
        print(error)
        return 1
    print(f"{num_caught} of {len(faults)} caught ({time.monotonic() - start:.0f} s)")
    return 0 if num_caught == len(faults) else 1


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    sys.exit(main())
