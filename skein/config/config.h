// The configuration of a run: reads TOML, and gives checked and typed values.
//
// Format   docs/configuration.md. Every key is one row of the table in fields.cc; parsing,
//          `--set`, types, ranges, spelling suggestions, the printed form and the reference in the
//          documentation all derive from it. The defaults are the initialisers below.
// Errors   Error{kUsage} naming the file and line (or the --set), the key, what was found and what
//          was expected. An unknown key is an error that suggests the nearest one.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "skein/base/text/json.h"
#include "skein/optim/learning_rate.h"

namespace skein {

struct RunConfig {
  std::string dir = "runs/demo";
  int64_t seed = 1;
  int64_t steps = 2000;
  double epochs = 0;  // 0 once converted to steps (length.h); tokens likewise
  int64_t tokens = 0;
  std::string resume = "auto";
  std::string accept_changes;  // keys of acceptable_changes()
  std::string on_divergence = "stop";
  int64_t max_roll_backs = 10;
  int64_t stop_after_worse = 0;
  double stop_after_hours = 0;
  bool check_state = true;
  bool operator==(const RunConfig&) const = default;
};

struct ModelConfig {
  // "" where the inline keys describe the whole model, or where init_from's own configuration is
  // used.
  std::string hf_config = "configs/models/llama2-7b.json";
  // Keys of a Hugging Face config.json that are given in [model]; they override those of the file.
  Json inline_keys = Json::object();
  std::string init_from;
  double init_std = 0.02;
  bool scaled_init = true;
  bool operator==(const ModelConfig&) const = default;
};

// One corpus of several.
struct DataSource {
  std::string path;
  double weight = 1;  // its share of the tokens, relative to the others'
  std::string name;   // left out: that of the file or folder
  bool operator==(const DataSource&) const = default;
};

struct DataConfig {
  std::string train;
  std::vector<DataSource> source;  // in place of train
  std::string tokenizer;
  std::string validation;
  std::vector<DataSource> validation_set;  // beside validation; their weights mean nothing
  int64_t sequence_length = 4096;
  bool document_mask = true;
  std::string special_tokens = "text";
  std::string loss_on = "all";           // or "completion"
  std::string objective = "next_token";  // or "masked"
  double mask_probability = 0.15;        // of "masked"
  bool mask_whole_words = false;
  std::string mask_token;    // empty: that of the tokenizer's files
  int64_t lanes = 0;         // 0: those of the checkpoint, or of the largest batch
  std::string skip_batches;  // SkippedBatches::parse
  int64_t cache_bytes = int64_t{2} << 30;
  bool operator==(const DataConfig&) const = default;
};

struct BatchConfig {
  int64_t global_sequences = 1024;
  std::string ramp = {};  // BatchRamp::parse
  int64_t micro_sequences = 1;
  bool operator==(const BatchConfig&) const = default;
};

struct OptimizerConfig {
  std::string name = "adamw";
  double learning_rate = 3e-4;
  double min_learning_rate = 3e-5;  // where it is not set: learning_rate_floor (length.h)
  double min_learning_rate_ratio = 0.1;
  std::string schedule = "cosine";
  int64_t warmup_steps = 2000;
  int64_t constant_steps = 0;
  int64_t decay_steps = 480000;
  double beta1 = 0.9;
  double beta2 = 0.95;
  double epsilon = 1e-5;
  double momentum = 0.95;
  double weight_decay = 0.1;
  bool decay_norms = true;
  bool decay_biases = true;
  bool decay_embeddings = true;
  double clip_norm = 1.0;
  bool operator==(const OptimizerConfig&) const = default;
};

struct PrecisionConfig {
  std::string mode = "bf16-sr";
  std::string moments = "fp32";
  bool fast_accumulation = false;
  bool repeatable = true;
  bool operator==(const PrecisionConfig&) const = default;
};

struct MemoryConfig {
  std::string recompute = "selective";
  bool offload_optimizer = false;
  bool offload_activations = false;
  int64_t offload_min_bytes = int64_t{1} << 20;
  bool keep_fp8_weights = true;
  bool operator==(const MemoryConfig&) const = default;
};

struct ParallelConfig {
  int64_t data = 0;
  int64_t tensor = 1;
  int64_t pipeline = 1;
  int64_t context = 1;
  int64_t virtual_stages = 1;
  bool sequence = true;
  int64_t zero = 1;
  int64_t kv_replication = 0;
  int64_t reduction_width = 0;
  std::string sums = "canonical";
  bool overlap = true;
  bool pairs = false;
  bool operator==(const ParallelConfig&) const = default;
};

struct CheckpointConfig {
  int64_t every_steps = 1000;
  int64_t keep = 5;
  int64_t permanent_every_steps = 0;
  int64_t memory_every_steps = -1;
  bool async = true;
  std::string best_by;  // "" or the name of a validation loss
  std::string dir;
  bool operator==(const CheckpointConfig&) const = default;
};

struct LaunchConfig {
  int64_t workers = 1;
  int64_t workers_per_process = 0;  // 0: not set (node_range.h)
  std::string nodes = "1";
  bool supervise = false;
  std::string rendezvous;
  std::string secret_file;
  std::string etcd_ca_file;
  std::string etcd_cert_file;
  std::string etcd_key_file;
  std::string etcd_user;
  std::string etcd_password_file;
  double collective_timeout_s = 60;
  double hang_timeout_s = 300;
  int64_t max_restarts = 100;
  bool health_checks = true;
  std::string on_event;
  bool operator==(const LaunchConfig&) const = default;
};

struct DeviceConfig {
  std::string kind = "auto";
  int64_t threads = 0;
  std::string cpu = "auto";
  bool check_ops = false;
  std::string pjrt_plugin;
  std::string compile_cache;  // empty: the default folder; "off": none
  double compile_cache_gb = 10;
  double compile_timeout_s = 3600;
  std::string optimization_level;
  int64_t executions_in_flight = 3;
  bool operator==(const DeviceConfig&) const = default;
};

struct LogConfig {
  int64_t every_steps = 0;  // 0: not set (record/log/progress.h)
  bool tensorboard = true;
  std::string prometheus;
  int64_t trace_step = 0;
  bool operator==(const LogConfig&) const = default;
};

struct ValidateConfig {
  int64_t every_steps = 0;
  int64_t batches = 50;  // at most; 0: the whole set
  bool before_training = false;
  bool operator==(const ValidateConfig&) const = default;
};

// One [[evaluate]]: tasks that a run is evaluated on. No part of its identity.
struct EvaluateConfig {
  std::string tasks;         // names with commas between
  int64_t every_steps = 0;   // 0: at the end
  int64_t limit = 0;         // documents of each task; 0: all
  int64_t num_fewshot = -1;  // examples in each context; -1: the task's
  std::string data;          // a folder with data sets; "": the caches of Hugging Face
  std::string include_path;  // a folder with task files; "": SKEIN_TASKS, or an installed lm-eval
  bool operator==(const EvaluateConfig&) const = default;
};

// Read by `skein plan` alone; no part of a run's identity.
struct PlanConfig {
  std::string hardware;
  int64_t ranks = 0;
  bool operator==(const PlanConfig&) const = default;
};

// How derived values came about. Not part of a configuration's identity: all origins compare equal.
struct ConfigOrigin {
  bool warmup_given = false;
  bool decay_given = false;
  bool floor_given = false;     // optimizer.min_learning_rate
  bool init_std_given = false;  // model.init_std
  std::string length;           // for people: how run.steps was computed; empty: it was given
  // Paths with variables or ~ that do not count from a folder, as they were written, by their key
  // and by what they mean.
  std::map<std::pair<std::string, std::string>, std::string> places;
  bool operator==(const ConfigOrigin&) const { return true; }
};

struct Config {
  RunConfig run;
  ModelConfig model;
  DataConfig data;
  BatchConfig batch;
  OptimizerConfig optimizer;
  PrecisionConfig precision;
  MemoryConfig memory;
  ParallelConfig parallel;
  CheckpointConfig checkpoint;
  LaunchConfig launch;
  DeviceConfig device;
  LogConfig log;
  ValidateConfig validate;
  std::vector<EvaluateConfig> evaluate;
  PlanConfig plan;
  ConfigOrigin origin;
  bool operator==(const Config&) const = default;
};

// What the configuration is used for: a plan needs neither a corpus nor a tokenizer.
enum class ConfigUse { kTrain, kPlan };

// Prefix of a path in a configuration file that stands for the folder of that file.
inline constexpr std::string_view kConfigDir = "{config_dir}";

// The configuration file that `path` means: a run folder means the config.toml in it. Throws
// Error{kUsage} for a folder that has none.
std::string config_file_of(const std::string& path);

// Reads `path`, applies the overrides ("section.key=value") in order, expands {config_dir}, and
// checks the result. run.epochs is converted later, by count_epochs (length.h).
Config load_config(const std::string& path, std::span<const std::string> overrides = {},
                   ConfigUse use = ConfigUse::kTrain);

// The same for TOML text; `name` stands for the file in errors. Checks the type and range of each
// key, but not how keys fit together. Leaves run.epochs as it is.
Config parse_config(std::string_view text, const std::string& name,
                    std::span<const std::string> overrides = {});

// Checks how keys fit together: that the batch divides, that the phases of the schedule fit, and so
// on.
void check_config(const Config& config, const std::string& name, ConfigUse use = ConfigUse::kTrain);

// TOML text with every key filled in; parse_config reads it back to an equal Config. Paths are what
// they mean.
std::string config_text(const Config& config);
// The same with paths as they were written: ${NAME} and ~ stay.
std::string config_text_as_written(const Config& config);

// The reference tables of docs/configuration.md, in Markdown.
std::string config_reference();

// The Hugging Face configuration of the model: the keys of the file hf_config, or of `otherwise`
// where no file is named, overridden by the keys in [model].
Json hf_config_json(const ModelConfig& model, const Json& otherwise = Json::object());

LearningRateSchedule learning_rate_schedule(const OptimizerConfig& optimizer);

// The keys whose change run.accept_changes may allow.
std::span<const std::string_view> acceptable_changes();
// The keys in a value of run.accept_changes. Throws Error{kUsage} for a key that is not acceptable.
std::vector<std::string> parse_accepted_changes(std::string_view text);

// The absolute path, without a trailing slash. An empty path and a URL (s3://...) stay as they are.
std::string absolute_path(const std::string& path);

// The folder of checkpoints: checkpoint.dir, or run.dir/checkpoints where that is empty.
std::string checkpoint_dir(const Config& config);

}  // namespace skein
