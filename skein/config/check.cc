#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <optional>
#include <set>

#include "skein/base/error.h"
#include "skein/base/text/divisors.h"
#include "skein/base/text/units.h"
#include "skein/config/batches.h"
#include "skein/config/config.h"
#include "skein/config/node_range.h"
#include "skein/data/lanes/skipped_batches.h"
#include "skein/objects/url.h"
#include "skein/optim/update.h"

namespace skein {
namespace {

// Throws errors of the form "<file>: <message>".
class Checker {
 public:
  explicit Checker(const std::string& name) : name_(name) {}

  template <typename... Args>
  void require(bool holds, fmt::format_string<Args...> format, Args&&... args) const {
    if (holds) return;
    fail(ErrorCode::kUsage, "{}: {}", name_, fmt::format(format, std::forward<Args>(args)...));
  }

 private:
  const std::string& name_;
};

constexpr size_t kMaxSources = kMaxCorpora;

// Checkpoints and metrics know the corpora by name.
void check_names(std::span<const DataSource> sources, const char* key, const Checker& check) {
  std::set<std::string> names;
  for (const DataSource& source : sources) {
    const std::string& name = source.name;
    const bool is_word = !name.empty() && std::all_of(name.begin(), name.end(), [](char c) {
      return c == '_' || c == '-' || c == '.' || std::isalnum(static_cast<unsigned char>(c)) != 0;
    });
    check.require(is_word,
                  "[[data.{}]] {} has the name \"{}\": expected letters, digits, -, _ and .; name "
                  "says another one than that of the file",
                  key, source.path, name);
    check.require(names.insert(name).second,
                  "[[data.{}]] has two corpora of the name \"{}\": expected another `name` for one "
                  "of them",
                  key, name);
  }
}

void check_data(const Config& config, const Checker& check, ConfigUse use) {
  const DataConfig& data = config.data;
  if (use == ConfigUse::kTrain) {
    check.require(!data.train.empty() || !data.source.empty(),
                  "[data] train is missing: expected the corpus, an Arrow file that "
                  "`skein data ingest` wrote");
    check.require(!data.tokenizer.empty() || !config.model.init_from.empty(),
                  "[data] tokenizer is missing: expected a folder that `skein data tokenizer` "
                  "wrote, or that holds a tokenizer.model or tokenizer.json; or [model] init_from, "
                  "whose own is taken then");
  }
  check.require(data.train.empty() || data.source.empty(),
                "[data] has train and source: expected one of them; a corpus that is read with "
                "others is a source");
  check.require(
      data.source.empty() || config.run.epochs == 0,
      "[run] epochs is {}, and [[data.source]] names {} corpora, which are each read at a "
      "pace of their own: expected run.steps or run.tokens",
      config.run.epochs, data.source.size());
  check.require(
      config.validate.every_steps == 0 || !data.validation.empty() || !data.validation_set.empty(),
      "[validate] every_steps is {} but [data] validation is empty: expected a corpus to "
      "validate on",
      config.validate.every_steps);
  check.require(
      !config.validate.before_training || !data.validation.empty() || !data.validation_set.empty(),
      "[validate] before_training is true but [data] validation is empty: expected a corpus to "
      "validate on");
  check.require(data.source.size() <= kMaxSources,
                "[[data.source]] names {} corpora, expected at most {}: corpora of one kind can "
                "lie in one folder, which is one source",
                data.source.size(), kMaxSources);
  check.require(data.objective != "masked" || data.loss_on == "all",
                "[data] objective is \"masked\" and loss_on is \"{}\": expected loss_on = \"all\", "
                "since any token may be masked",
                data.loss_on);
  check_names(data.source, "source", check);
  check_names(data.validation_set, "validation_set", check);
}

void check_places(const Config& config, const Checker& check) {
  check.require(!config.run.dir.empty(), "[run] dir is empty: expected a folder");
}

// A spike is recognized in its fifth step. The checkpoint before it must be there still.
void check_roll_back(const Config& config, const Checker& check) {
  constexpr int64_t kSpikeSteps = 5;
  const CheckpointConfig& checkpoint = config.checkpoint;
  // How many are saved in so many steps; each validation may be a new best.
  const auto saved = [&](int64_t every) { return every == 0 ? 0 : ceil_div(kSpikeSteps, every); };
  const int64_t validated = checkpoint.best_by.empty() ? 0 : saved(config.validate.every_steps);
  const int64_t least = 1 + saved(checkpoint.every_steps) + validated;
  const bool kept = checkpoint.keep == 0 || least == 1 || checkpoint.keep >= least;
  check.require(config.run.on_divergence != "roll_back" || kept,
                "[run] on_divergence is \"roll_back\", and [checkpoint] keep = {} with every_steps "
                "= {} does not keep the checkpoint of {} steps ago: expected keep from {}",
                checkpoint.keep, checkpoint.every_steps, kSpikeSteps, least);
  const auto skipped = try_run([&] { return SkippedBatches::parse(config.data.skip_batches); });
  if (!skipped.ok()) check.require(false, "[data] {}", skipped.error().what());
}

void check_model(const ModelConfig& model, const Checker& check) {
  check.require(!model.hf_config.empty() || !model.inline_keys.empty() || !model.init_from.empty(),
                "[model] says nothing about the model: expected hf_config, the keys hidden_size, "
                "num_hidden_layers, …, or init_from");
}

// Batches of `rows`; `what`: the key, and that number.
void check_batch_of(int64_t rows, const std::string& what, const char* key, const Config& config,
                    const Checker& check) {
  const int64_t micro = config.batch.micro_sequences;
  check.require(rows % micro == 0,
                "[batch] {}: expected a multiple of micro_sequences, which is {}, such as {}; or "
                "micro_sequences {}",
                what, micro, multiples_near(rows, micro), divisors_near(micro, rows));
  const int64_t micro_batches = rows / micro;
  const ParallelConfig& parallel = config.parallel;
  const int64_t wider = divisor_from(parallel.data, micro_batches);
  check.require(
      parallel.data == 0 || parallel.reduction_width > 0 || micro_batches % parallel.data == 0,
      "[batch] {}, that is {} micro-batches of {}: expected a multiple of [parallel] data, which "
      "is {}, such as {} {}{}",
      what, micro_batches, micro, parallel.data, key,
      multiples_near(rows, micro * std::max<int64_t>(1, parallel.data)),
      wider == 0 ? ""
                 : fmt::format("; or [parallel] reduction_width = {}, virtual ranks that the data "
                               "ranks share",
                               wider));
  const int64_t width = parallel.reduction_width;
  check.require(width == 0 || micro_batches % width == 0,
                "[batch] {}, that is {} micro-batches of {}: expected a multiple of [parallel] "
                "reduction_width, which is {}, such as {} {}",
                what, micro_batches, micro, width, key,
                multiples_near(rows, micro * std::max<int64_t>(1, width)));
}

void check_batch(const Config& config, const Checker& check) {
  const int64_t global = config.batch.global_sequences;
  const int64_t micro = config.batch.micro_sequences;
  check.require(micro <= global,
                "[batch] micro_sequences is {}, more than global_sequences, which is {}", micro,
                global);
  auto ramp = try_run([&] { return batch_ramp(config); });
  if (!ramp.ok()) check.require(false, "[batch] {}", ramp.error().what());
  for (const int64_t rows : ramp.value().sizes()) {
    const bool is_last = rows == global;
    check_batch_of(rows,
                   is_last ? fmt::format("global_sequences is {}", rows)
                           : fmt::format("ramp has batches of {}", rows),
                   is_last ? "global_sequences" : "batches of", config, check);
  }
  constexpr int64_t kMostTokens = (int64_t{1} << 31) - 1;  // counted in 32 bits
  for (const auto& [key, rows] : {std::pair("[batch] global_sequences", global),
                                  std::pair("[data] lanes", config.data.lanes)}) {
    check.require(rows <= kMostTokens / config.data.sequence_length,
                  "{} {} x [data] sequence_length {} is {} tokens: expected at most {}", key, rows,
                  config.data.sequence_length, rows * config.data.sequence_length, kMostTokens);
  }
  const ParallelConfig& parallel = config.parallel;
  const int64_t width = parallel.reduction_width;
  check.require(width == 0 || parallel.data <= width,
                "[parallel] reduction_width is {}: expected at least data, which is {}", width,
                parallel.data);
}

// Of the loss that chooses the best checkpoint.
void check_best(const Config& config, const Checker& check) {
  const std::string& best_by = config.checkpoint.best_by;
  const int64_t worse = config.run.stop_after_worse;
  check.require(worse == 0 || !best_by.empty(),
                "[run] stop_after_worse is {}, and [checkpoint] best_by names no loss: expected "
                "best_by = \"validation_loss\", or that of a validation set",
                worse);
  if (best_by.empty()) return;
  std::vector<std::string> known;
  if (!config.data.validation.empty()) known.emplace_back("validation_loss");
  for (const DataSource& set : config.data.validation_set) {
    known.push_back("validation_loss/" + set.name);
  }
  check.require(!known.empty(),
                "[checkpoint] best_by is \"{}\", and there is nothing to validate on: expected "
                "[data] validation or [[data.validation_set]]",
                best_by);
  check.require(std::find(known.begin(), known.end(), best_by) != known.end(),
                "[checkpoint] best_by is \"{}\": expected {}", best_by, fmt::join(known, " or "));
  check.require(config.validate.every_steps > 0,
                "[checkpoint] best_by is \"{}\", and [validate] every_steps is 0: expected how "
                "many steps lie between validations",
                best_by);
}

void check_optimizer(const Config& config, const Checker& check) {
  const OptimizerConfig& optimizer = config.optimizer;
  if (optimizer.schedule == "constant") return;
  check.require(optimizer.min_learning_rate <= optimizer.learning_rate,
                "[optimizer] min_learning_rate is {}, above learning_rate, which is {}",
                optimizer.min_learning_rate, optimizer.learning_rate);
  check.require(optimizer.decay_steps > 0,
                "[optimizer] decay_steps is 0 with schedule = \"{}\": expected at least 1, or "
                "schedule = \"constant\"",
                optimizer.schedule);
}

// The update and the initial weights are computed in fp32, where a small positive number may round
// to zero.
void check_fp32(const Config& config, const Checker& check) {
  const OptimizerConfig& optimizer = config.optimizer;
  const struct {
    const char* section;
    const char* key;
    double value;
  } numbers[] = {{"optimizer", "learning_rate", optimizer.learning_rate},
                 {"optimizer", "min_learning_rate", optimizer.min_learning_rate},
                 {"optimizer", "epsilon", optimizer.epsilon},
                 {"optimizer", "weight_decay", optimizer.weight_decay},
                 {"optimizer", "clip_norm", optimizer.clip_norm},
                 {"model", "init_std", config.model.init_std}};
  for (const auto& [section, key, value] : numbers) {
    check.require(value == 0 || std::isnormal(static_cast<float>(value)),
                  "[{}] {} is {}, too small for fp32, in which it is used: expected at least "
                  "1.18e-38",
                  section, key, value);
  }
  for (const auto& [key, value] :
       {std::pair{"beta1", optimizer.beta1}, std::pair{"beta2", optimizer.beta2},
        std::pair{"momentum", optimizer.momentum}}) {
    check.require(static_cast<float>(value) < 1,
                  "[optimizer] {} is {}, which is 1 in fp32, in which it is used: a moment would "
                  "never change. Expected at most 0.9999999",
                  key, value);
  }
}

void check_parallel(const Config& config, const Checker& check) {
  const ParallelConfig& parallel = config.parallel;
  constexpr int64_t kMostRanks = int64_t{1} << 24;
  int64_t ranks = 1;
  for (const int64_t degree : {std::max<int64_t>(1, parallel.data), parallel.tensor,
                               parallel.pipeline, parallel.context}) {
    check.require(
        ranks <= kMostRanks / degree,
        "[parallel] data {} x tensor {} x pipeline {} x context {} is more than {} ranks: "
        "expected smaller degrees",
        parallel.data, parallel.tensor, parallel.pipeline, parallel.context, kMostRanks);
    ranks *= degree;
  }
  const int64_t length = config.data.sequence_length;
  const int64_t pieces = parallel.context == 1 ? 1 : 2 * parallel.context;
  check.require(length % pieces == 0,
                "[data] sequence_length is {}: expected a multiple of 2 x [parallel] context = {}, "
                "such as {}, since each context rank takes two pieces of a sequence",
                length, pieces, multiples_near(length, pieces));
  check.require(parallel.virtual_stages == 1 || parallel.pipeline > 1,
                "[parallel] virtual_stages is {} but pipeline is 1: expected more than one stage",
                parallel.virtual_stages);
  check.require(!parallel.pairs || parallel.pipeline == 1,
                "[parallel] pairs is true with pipeline {}: stages have an order of forwards and "
                "backwards of their own; expected pipeline = 1, or pairs = false",
                parallel.pipeline);
  check.require(!parallel.pairs || parallel.overlap,
                "[parallel] pairs is true and overlap false: a pair computes while collectives "
                "travel; expected overlap = true, or pairs = false");
}

void check_nodes(const std::string& nodes, const Checker& check) {
  check.require(parse_node_range(nodes).has_value(),
                "[launch] nodes is \"{}\": expected \"N\" or \"MIN:MAX\", such as \"4\" or \"2:8\"",
                nodes);
}

void check_prometheus(const std::string& address, const Checker& check) {
  if (address.empty()) return;
  const size_t colon = address.rfind(':');
  const auto port = colon == std::string::npos
                        ? std::nullopt
                        : parse_count(std::string_view(address).substr(colon + 1));
  check.require(port && *port <= 65535 && colon > 0,
                "[log] prometheus is \"{}\": expected host:port, such as \"127.0.0.1:9100\"",
                address);
}

// What is set for etcd is of use there alone, and no password may get into config.toml.
void check_etcd(const LaunchConfig& launch, const Checker& check) {
  const bool is_encrypted = launch.rendezvous.starts_with("etcds://");
  const bool is_etcd = is_encrypted || launch.rendezvous.starts_with("etcd://");
  const auto is_for = [&](bool holds, const std::string& value, const char* key,
                          const char* scheme) {
    check.require(
        holds || value.empty(),
        "[launch] {} is set, but launch.rendezvous is \"{}\": expected {}host:port/prefix", key,
        launch.rendezvous, scheme);
  };
  is_for(is_encrypted, launch.etcd_ca_file, "etcd_ca_file", "etcds://");
  is_for(is_encrypted, launch.etcd_cert_file, "etcd_cert_file", "etcds://");
  is_for(is_encrypted, launch.etcd_key_file, "etcd_key_file", "etcds://");
  is_for(is_etcd, launch.etcd_user, "etcd_user", "etcds://");
  is_for(is_etcd, launch.etcd_password_file, "etcd_password_file", "etcds://");
  check.require(!is_etcd || launch.rendezvous.find('@') == std::string::npos,
                "[launch] rendezvous holds an @, as if a user and a password stood before it: a "
                "configuration is written into the run folder, so name the user in "
                "launch.etcd_user, and a file with the password in launch.etcd_password_file");
  check.require(launch.etcd_user.find(':') == std::string::npos,
                "[launch] etcd_user holds a colon, as if a password followed: a configuration is "
                "written into the run folder, so name a file with the password in "
                "launch.etcd_password_file");
}

}  // namespace

void check_config(const Config& config, const std::string& name, ConfigUse use) {
  const Checker check(name);
  check_places(config, check);
  check.require(!config.run.resume.empty(),
                "[run] resume is empty: expected auto, never or the path of a checkpoint");
  if (const auto accepted =
          try_run([&] { return parse_accepted_changes(config.run.accept_changes); });
      !accepted.ok()) {
    check.require(false, "{}", accepted.error().what());
  }
  check_data(config, check, use);
  check_roll_back(config, check);
  check_model(config.model, check);
  check_batch(config, check);
  check_best(config, check);
  check_optimizer(config, check);
  check_fp32(config, check);
  check_parallel(config, check);
  check_nodes(config.launch.nodes, check);
  check_etcd(config.launch, check);
  check_prometheus(config.log.prometheus, check);
}

}  // namespace skein
