// skein checkpoint list|verify RUN_OR_CHECKPOINT [--json]
// skein checkpoint export CHECKPOINT --out HF_DIR
#include <fmt/format.h>

#include <memory>

#include "skein/base/text/units.h"
#include "skein/checkpoint/find/best_checkpoint.h"
#include "skein/checkpoint/find/newest_good.h"
#include "skein/checkpoint/format/stored_file.h"
#include "skein/cli/commands/commands.h"
#include "skein/cli/shared/print.h"
#include "skein/config/run/checkpoints.h"
#include "skein/objects/url.h"
#include "skein/weights/export.h"

namespace skein {
namespace {

struct Options {
  std::string path;
  bool json = false;
};

// The checkpoints that a path names: a single one, those of a run, or those in a folder of
// checkpoints.
std::vector<CheckpointInfo> find_checkpoints(const fs::path& named) {
  const fs::path path = find_checkpoint(named);
  if (is_object_url(path) ? !is_stored(path) : !fs::is_directory(path)) {
    fail(ErrorCode::kNotFound, "{} is not a folder: expected a run or a checkpoint", path.string());
  }
  const fs::path full = is_object_url(path) ? path : fs::absolute(path / "").parent_path();
  const auto step = step_of_folder(full);
  if (step) return {{*step, path}};
  if (is_stored(path / "manifest.json")) {  // a checkpoint under another name
    const auto stored = try_run([&] { return CheckpointReader(path).state().step; });
    return {{stored.ok() ? Result<int64_t>(stored).value() : 0, path}};
  }
  std::vector<CheckpointInfo> found = list_checkpoints(checkpoints_inside(path));
  if (found.empty()) fail(ErrorCode::kNotFound, "{} holds no checkpoint", path.string());
  return found;
}

// Describes the error of a checkpoint that is not good.
std::string describe(const Error& error) {
  return fmt::format("{}: {}", is_read_error(error) ? "CANNOT BE READ" : "DAMAGED", error.what());
}

// The loss by which the run chooses its best checkpoint; "": it chooses none.
std::string best_by_of(std::span<const CheckpointInfo> checkpoints) {
  for (const CheckpointInfo& info : checkpoints) {
    const auto validation = try_run([&] { return read_validation(info.path); });
    if (!validation.ok()) continue;
    const Json found = Result<Json>(validation).value();
    return found.is_object() ? found.value("best_by", "") : "";
  }
  return "";
}

int list(const Options& options) {
  OrderedJson rows = OrderedJson::array();
  const std::vector<CheckpointInfo> checkpoints = find_checkpoints(options.path);
  const std::string best_by = best_by_of(checkpoints);
  const int64_t best = best_by.empty() ? -1 : best_step(checkpoints, best_by).value_or(-1);
  for (const CheckpointInfo& info : checkpoints) {
    const auto bytes = try_run([&] { return CheckpointReader(info.path).total_bytes(); });
    OrderedJson row = {{"step", info.step}, {"path", info.path.string()}};
    if (bytes.ok()) {
      Result<int64_t> value = bytes;
      row["bytes"] = value.value();
    } else {
      row["error"] = bytes.error().what();
    }
    std::string mark;
    if (!best_by.empty() && bytes.ok()) {
      const auto loss = loss_in(read_validation(info.path), best_by);
      if (loss) row[best_by] = *loss;
      row["best"] = info.step == best;
      if (loss && info.step == best) mark = fmt::format("  best: {} {:.4f}", best_by, *loss);
    }
    if (!options.json) {
      print_line(stdout, "{:>10}  {:>9}  {}{}{}", info.step,
                 bytes.ok() ? format_bytes(row["bytes"].get<int64_t>()) : "?", info.path.string(),
                 mark, bytes.ok() ? "" : "  " + describe(bytes.error()));
    }
    rows.push_back(std::move(row));
  }
  if (options.json) print_json({{"checkpoints", rows}});
  return kExitDone;
}

int verify(const Options& options) {
  OrderedJson rows = OrderedJson::array();
  bool all_good = true;
  for (const CheckpointInfo& info : find_checkpoints(options.path)) {
    const Result<VerifyReport> report = verify_checkpoint(info.path);
    all_good = all_good && report.ok();
    rows.push_back({{"step", info.step},
                    {"path", info.path.string()},
                    {"ok", report.ok()},
                    {"error", report.ok() ? "" : report.error().what()}});
    if (!options.json) {
      print_line(stdout, "{:>10}  {}  {}", info.step, info.path.string(),
                 report.ok() ? "good" : describe(report.error()));
    }
  }
  if (options.json) print_json({{"checkpoints", rows}});
  return all_good ? kExitDone : kExitFailed;
}

void add_inspection(CLI::App& group, CommandContext& context, const char* name, const char* help,
                    int (*run)(const Options&)) {
  const auto options = std::make_shared<Options>();
  CLI::App* command = group.add_subcommand(name, help);
  as_path(command->add_option("RUN_OR_CHECKPOINT", options->path, "a run folder or one checkpoint"))
      ->required();
  command->add_flag("--json", options->json, "print one JSON document");
  command->callback(
      [&context, options, run] { context.run = [options, run] { return run(*options); }; });
}

void add_export(CLI::App& group, CommandContext& context) {
  struct ExportOptions {
    std::string checkpoint;
    std::string out;
    bool without_tokenizer = false;
  };
  const auto options = std::make_shared<ExportOptions>();
  CLI::App* command = group.add_subcommand("export", "Write a Hugging Face model folder");
  as_path(
      command->add_option("CHECKPOINT", options->checkpoint, "a checkpoint, or a run: its newest"))
      ->required();
  as_path_of_a_disk(command->add_option("--out", options->out, "the new folder"))->required();
  command->add_flag("--without-tokenizer", options->without_tokenizer, "export the model alone");
  command->callback([&context, options] {
    context.run = [options] {
      const ModelSource source(options->checkpoint);
      export_hugging_face(source, options->out, !options->without_tokenizer);
      print_line(stderr, "{} → {}", source.path().string(), options->out);
      return kExitDone;
    };
  });
}

}  // namespace

void add_checkpoint_commands(CLI::App& app, CommandContext& context) {
  CLI::App& group = command_group(app, "checkpoint", "List, verify and export checkpoints");
  add_inspection(group, context, "list", "List the checkpoints of a run, newest first", list);
  add_inspection(group, context, "verify", "Check every byte against its checksum", verify);
  add_export(group, context);
}

}  // namespace skein
