// skein train CONFIG.toml [--set section.key=value]…
#include <memory>

#include "skein/base/log.h"
#include "skein/cli/commands.h"
#include "skein/train/trainer.h"

namespace skein {

void add_train_command(CLI::App& app, CommandContext& context) {
  const auto options = std::make_shared<ConfigOptions>();
  CLI::App* command = app.add_subcommand("train", "Train a model; run again to continue");
  options->add_to(*command);
  command->callback([&context, options] {
    context.run = [options] {
      const Config config = load_config(options->path, options->overrides);
      fs::create_directories(fs::path(config.run.dir) / "logs");
      log::start((fs::path(config.run.dir) / "logs" / "rank-00000.log").string());
      const TrainOutcome outcome = Trainer(config).run();
      return outcome == TrainOutcome::kStopped ? kExitRequeue : kExitDone;
    };
  });
}

}  // namespace skein
