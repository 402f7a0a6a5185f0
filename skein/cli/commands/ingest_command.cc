// skein data ingest --out FILE.arrow INPUT...
// skein data ingest --out DIR --shards N [--shard-index i/n | --slurm] INPUT...
#include <memory>

#include "skein/cli/commands/commands.h"
#include "skein/cli/inputs/ingest_arguments.h"

namespace skein {

void add_ingest_command(CLI::App& group, CommandContext& context) {
  const auto options = std::make_shared<IngestArguments>();
  CLI::App* command = group.add_subcommand(
      "ingest", "Turn text, JSON, CSV, Parquet and Arrow into one corpus file, or into shards");
  add_ingest_arguments(*command, *options);
  add_chat_options(*command, options->chat);
  command->callback([&context, options] {
    context.run = [options] {
      run_ingest(*options, {"data", "ingest"});
      return kExitDone;
    };
  });
}

}  // namespace skein
