#include "skein/config/fields.h"

#include <fmt/format.h>

#include "skein/ops/optimizer.h"

namespace skein {
namespace {

// Returns a pointer to Config::<Section>::<Key>.
template <auto Section, auto Key>
ConfigValue at(Config& config) {
  return &(config.*Section.*Key);
}

using C = Config;
using Parallel = ParallelConfig;
using Optimizer = OptimizerConfig;

constexpr double kMaxInteger = 9e15;  // below 2^53, so exact as a double
constexpr double kMaxCount = 1 << 24;

// How a run continues with another value (ConfigChange).
constexpr ConfigChange kAsk = {.then = OnChange::kAsk};
constexpr ConfigChange kOtherState = {.then = OnChange::kOtherState};
constexpr ConfigChange kRefuse = {.then = OnChange::kRefuse};
constexpr ConfigChange kIgnore = {.then = OnChange::kIgnore};
constexpr ConfigChange kByContent = {.then = OnChange::kByContent};
constexpr ConfigChange kByContentAsk = {.then = OnChange::kByContentAsk};

ConfigLimits any() { return {}; }
ConfigLimits required_path() { return {.required = true, .is_path = true}; }
ConfigLimits a_path() { return {.is_path = true}; }
ConfigLimits a_path_of_a_disk() { return {.is_path = true, .use = PlaceUse::kDisk}; }
ConfigLimits one_of(std::vector<std::string_view> choices) { return {std::move(choices)}; }
ConfigLimits between(double minimum, double maximum) { return {{}, minimum, maximum}; }
ConfigLimits above(double minimum, double maximum) { return {{}, minimum, maximum, true}; }
ConfigLimits from_below(double minimum, double maximum) {
  return {{}, minimum, maximum, false, true};
}

std::vector<std::string_view> optimizer_names() {
  std::vector<std::string_view> names;
  for (const skein::Optimizer* optimizer : all_optimizers()) names.push_back(optimizer->name);
  return names;
}

std::vector<ConfigField> make_fields() {
  return {
      {"run", "dir", at<&C::run, &RunConfig::dir>,
       "folder of the run: metrics, events, checkpoints, logs", a_path_of_a_disk()},
      {"run", "seed", at<&C::run, &RunConfig::seed>,
       "seed of weights, data order and stochastic rounding", between(0, kMaxInteger), kRefuse},
      {"run", "steps", at<&C::run, &RunConfig::steps>,
       "optimizer updates in the whole run; 0: not said", between(0, kMaxSteps)},
      {"run", "epochs", at<&C::run, &RunConfig::epochs>,
       "instead of steps: how often the corpus is read, 0.5 for half of it; 0: not said",
       between(0, 1e6)},
      {"run", "tokens", at<&C::run, &RunConfig::tokens>,
       "instead of steps: tokens in the whole run; 0: not said", between(0, kMaxInteger)},
      {"run", "resume", at<&C::run, &RunConfig::resume>,
       "`auto`: continue from the newest good checkpoint of the run; `never`: a new run, which is "
       "refused where run.dir holds checkpoints; or the path of a checkpoint or a run: an empty "
       "run begins there, and later starts of that run resume by themselves",
       a_path(), kIgnore},
      {"run", "accept_changes", at<&C::run, &RunConfig::accept_changes>,
       "keys that may differ from what the checkpoint, or the weights of init_from, were trained "
       "with, such as `model.rope_theta, data.train`; for this start alone",
       any(), kIgnore},
      {"run", "on_divergence", at<&C::run, &RunConfig::on_divergence>,
       "`stop`: a loss or norm that is not finite ends the run; `roll_back`: that, and a gradient "
       "spike of 5 steps, take it back to the newest checkpoint before, and it passes over the "
       "batches of those steps",
       one_of({"stop", "roll_back"})},
      {"run", "max_roll_backs", at<&C::run, &RunConfig::max_roll_backs>,
       "roll-backs in the whole run before divergence ends it", between(0, kMaxSteps)},
      {"run", "stop_after_worse", at<&C::run, &RunConfig::stop_after_worse>,
       "early stopping: the run ends, saved, after so many validations in a row without a new best "
       "of checkpoint.best_by; 0: never",
       between(0, kMaxSteps)},
      {"run", "stop_after_hours", at<&C::run, &RunConfig::stop_after_hours>,
       "so many hours after `skein train` began, the run is saved and stops with exit code 75, to "
       "be continued by the same command: for a queue that ends jobs after a time; 0: never",
       between(0, 1e5)},
      {"run", "check_state", at<&C::run, &RunConfig::check_state>,
       "with several ranks: in every step copies of weights and moments are compared, and nothing "
       "may change between updates; wrong bits end the step before anything is saved. On CPUs "
       "only"},

      {"model", "hf_config", at<&C::model, &ModelConfig::hf_config>,
       "a Hugging Face config.json; left out where its keys stand here and this key "
       "does not; with init_from and without this key, that of the source",
       a_path_of_a_disk(), kIgnore},
      {"model", "init_from", at<&C::model, &ModelConfig::init_from>,
       "a Hugging Face folder or a checkpoint to take the initial weights from", a_path()},
      {"model", "init_std", at<&C::model, &ModelConfig::init_std>,
       "standard deviation of the initial weights; where it is not set, the model's "
       "initializer_range, 0.02 by default. An export names it initializer_range",
       between(0, 10)},
      {"model", "scaled_init", at<&C::model, &ModelConfig::scaled_init>,
       "output projections of attention and MLP start with init_std / sqrt(2 * layers)"},

      {"data", "train", at<&C::data, &DataConfig::train>,
       "the corpus: an Arrow stream file written by `skein data ingest`, or a folder of them; also "
       "s3://BUCKET/KEY, as all corpora and the tokenizer",
       required_path(), kByContentAsk},
      {"data", "source", at<&C::data, &DataConfig::source>,
       "in place of train: several corpora, read together, each for its share of the tokens: "
       "`[[data.source]]` with `path`, `weight` (1) and `name`",
       any(), kByContentAsk},
      {"data", "tokenizer", at<&C::data, &DataConfig::tokenizer>,
       "folder of the tokenizer; with init_from and without this key, that of the source",
       required_path(), kByContentAsk},
      {"data", "validation", at<&C::data, &DataConfig::validation>,
       "a corpus to validate on; empty: none", a_path(), kByContent},
      {"data", "validation_set", at<&C::data, &DataConfig::validation_set>,
       "more corpora to validate on, each with a loss of its own: `[[data.validation_set]]` with "
       "`path` and `name`",
       any(), kByContent},
      {"data", "sequence_length", at<&C::data, &DataConfig::sequence_length>,
       "tokens in a row of the batch", between(2, kMaxCount), kAsk},
      {"data", "document_mask", at<&C::data, &DataConfig::document_mask>,
       "attention and positions stop at document boundaries; false: plain concatenation", any(),
       kAsk},
      {"data",
       "special_tokens",
       at<&C::data, &DataConfig::special_tokens>,
       "text that spells a special token of the tokenizer, such as `<|im_start|>`: text, its "
       "characters; parse, that token",
       one_of({"text", "parse"}),
       {.before = "\"text\"", .then = OnChange::kAsk}},
      {"data",
       "loss_on",
       at<&C::data, &DataConfig::loss_on>,
       "the tokens whose loss is trained on: `completion` is what the assistant wrote, in a corpus "
       "that says so",
       one_of({"all", "completion"}),
       {.before = "\"all\"", .then = OnChange::kAsk}},
      {"data",
       "objective",
       at<&C::data, &DataConfig::objective>,
       "what the model learns to find: `next_token`; or `masked`, tokens that are hidden from an "
       "encoder",
       one_of({"next_token", "masked"}),
       {.before = "\"next_token\"", .then = OnChange::kAsk}},
      {"data",
       "mask_probability",
       at<&C::data, &DataConfig::mask_probability>,
       "with objective = \"masked\": the share of tokens, or of words, that have to be found",
       above(0, 1),
       {.before = "0.15", .then = OnChange::kAsk}},
      {"data",
       "mask_whole_words",
       at<&C::data, &DataConfig::mask_whole_words>,
       "with objective = \"masked\": all tokens of a word are hidden together",
       any(),
       {.before = "false", .then = OnChange::kAsk}},
      {"data",
       "mask_token",
       at<&C::data, &DataConfig::mask_token>,
       "with objective = \"masked\": the text of the special token that stands for a hidden one; "
       "empty: mask_token of the tokenizer's files",
       any(),
       {.before = "\"\"", .then = OnChange::kAsk}},
      {"data", "lanes", at<&C::data, &DataConfig::lanes>,
       "streams of documents that rows are taken from in turn; fixed when the run begins. 0: "
       "batch.global_sequences at the first start, kept in checkpoints",
       between(0, kMaxCount), kByContent},
      {"data", "skip_batches", at<&C::data, &DataConfig::skip_batches>,
       "batches that no step trains on, by their numbers from 1, such as `17, 40-44`; what the "
       "checkpoint lists beside them stays skipped"},
      {"data", "cache_bytes", at<&C::data, &DataConfig::cache_bytes>,
       "what a worker keeps of corpora in a store (s3://…), in a file of TMPDIR that has no name",
       between(1 << 20, kMaxInteger)},

      {"batch", "global_sequences", at<&C::batch, &BatchConfig::global_sequences>,
       "rows in the global batch of one update", between(1, kMaxCount)},
      {"batch",
       "ramp",
       at<&C::batch, &BatchConfig::ramp>,
       "smaller batches at first: rows, and the last step that has them, such as `64 until 1000, "
       "256 until 5000`; global_sequences from then on",
       {},
       {.before = "\"\""}},
      {"batch", "micro_sequences", at<&C::batch, &BatchConfig::micro_sequences>,
       "rows that a data rank runs at once: several are faster, for more memory; global_sequences "
       "is a multiple of it times the reduction width",
       between(1, kMaxCount)},

      {"optimizer", "learning_rate", at<&C::optimizer, &Optimizer::learning_rate>,
       "the peak, reached after the warm-up", above(0, 1e3)},
      {"optimizer", "min_learning_rate", at<&C::optimizer, &Optimizer::min_learning_rate>,
       "the floor, held after the decay; left out: min_learning_rate_ratio of learning_rate",
       between(0, 1e3)},
      {"optimizer", "min_learning_rate_ratio",
       at<&C::optimizer, &Optimizer::min_learning_rate_ratio>,
       "the floor as a share of learning_rate, where min_learning_rate is not set", between(0, 1)},
      {"optimizer", "schedule", at<&C::optimizer, &Optimizer::schedule>, "shape of the decay",
       one_of({"cosine", "linear", "constant"})},
      {"optimizer", "warmup_steps", at<&C::optimizer, &Optimizer::warmup_steps>,
       "linear rise from 0; left out: a tenth of run.steps, 2000 at most", between(0, kMaxSteps)},
      {"optimizer", "constant_steps", at<&C::optimizer, &Optimizer::constant_steps>,
       "steps at the peak between warm-up and decay", between(0, kMaxSteps)},
      {"optimizer", "decay_steps", at<&C::optimizer, &Optimizer::decay_steps>,
       "steps of the decay itself, from the peak to the floor; left out: the rest of run.steps, "
       "480000 at most",
       between(0, kMaxSteps)},
      {"optimizer",
       "name",
       at<&C::optimizer, &Optimizer::name>,
       "`muon` updates the matrices of layers, and AdamW the embedding, the head, norms and biases",
       one_of(optimizer_names()),
       {.before = "\"adamw\"", .then = OnChange::kOtherState}},
      {"optimizer", "momentum", at<&C::optimizer, &Optimizer::momentum>,
       "of Muon, Nesterov's; one learning_rate and weight_decay suit Muon and AdamW alike",
       from_below(0, 1)},
      {"optimizer", "beta1", at<&C::optimizer, &Optimizer::beta1>, "decay of AdamW's first moment",
       from_below(0, 1)},
      {"optimizer", "beta2", at<&C::optimizer, &Optimizer::beta2>, "decay of AdamW's second moment",
       from_below(0, 1)},
      {"optimizer", "epsilon", at<&C::optimizer, &Optimizer::epsilon>,
       "added to the root of AdamW's second moment", above(0, 1)},
      {"optimizer", "weight_decay", at<&C::optimizer, &Optimizer::weight_decay>,
       "decoupled weight decay", between(0, 1e3)},
      {"optimizer", "decay_norms", at<&C::optimizer, &Optimizer::decay_norms>,
       "weight decay also on the weights of norms"},
      {"optimizer",
       "decay_biases",
       at<&C::optimizer, &Optimizer::decay_biases>,
       "weight decay also on biases",
       {},
       {.before = "true"}},
      {"optimizer",
       "decay_embeddings",
       at<&C::optimizer, &Optimizer::decay_embeddings>,
       "weight decay also on the embedding of tokens, which with model.tie_word_embeddings is the "
       "output head as well",
       {},
       {.before = "true"}},
      {"optimizer", "clip_norm", at<&C::optimizer, &Optimizer::clip_norm>,
       "gradients are scaled down to this global norm; 0: never", between(0, 1e9)},

      {"precision", "mode", at<&C::precision, &PrecisionConfig::mode>,
       "`bf16-sr`: bf16 weights with stochastic rounding and no master copy; `mixed`: "
       "bf16 with fp32 master weights; `fp8`: as bf16-sr, the matrix products of the layers from "
       "8-bit operands",
       one_of({"fp32", "bf16", "bf16-sr", "mixed", "fp8"}), kAsk},
      {"precision", "moments", at<&C::precision, &PrecisionConfig::moments>,
       "type of the optimizer's moments", one_of({"fp32", "bf16"}), kOtherState},
      {"precision", "fast_accumulation", at<&C::precision, &PrecisionConfig::fast_accumulation>,
       "with `fp8` on a GPU: forward products add with the about 14 bits of its tensor cores "
       "alone, which is faster; else sums move on to fp32 in between. A CPU adds in fp32"},
      {"precision", "repeatable", at<&C::precision, &PrecisionConfig::repeatable>,
       "false: on a GPU cuDNN may add the gradients of attention in any order, which is faster and "
       "takes less memory, and no two runs have the same bits"},

      {"memory", "recompute", at<&C::memory, &MemoryConfig::recompute>,
       "what the backward pass computes again instead of keeping",
       one_of({"none", "selective", "full"})},
      {"memory", "offload_optimizer", at<&C::memory, &MemoryConfig::offload_optimizer>,
       "keep moments and master weights in pinned host memory, which a GPU updates in place; "
       "slower"},
      {"memory", "offload_activations", at<&C::memory, &MemoryConfig::offload_activations>,
       "keep what the backward pass reads of the forward pass in pinned host memory; a GPU copies "
       "beside its computation, and waits where the link to the host is too slow for it"},
      {"memory", "offload_min_bytes", at<&C::memory, &MemoryConfig::offload_min_bytes>,
       "activations that are smaller on a rank stay on the device; adjacent activations, such as "
       "q, k and v, count as one",
       between(1, kMaxInteger)},
      {"memory", "keep_fp8_weights", at<&C::memory, &MemoryConfig::keep_fp8_weights>,
       "with `fp8`: round the weights of the layers once a step and keep them so beside their "
       "bf16, 2 bytes a weight; else every product of every micro-batch rounds them again. The "
       "losses are the same, on a GPU if the same algorithms multiply. Not with parallel.zero = 3, "
       "where no rank holds whole weights"},

      {"parallel", "data", at<&C::parallel, &Parallel::data>,
       "data-parallel degree; 0: the workers divided by the other degrees", between(0, kMaxCount)},
      {"parallel", "tensor", at<&C::parallel, &Parallel::tensor>, "tensor-parallel degree",
       between(1, kMaxCount)},
      {"parallel", "pipeline", at<&C::parallel, &Parallel::pipeline>, "pipeline stages",
       between(1, kMaxCount)},
      {"parallel", "context", at<&C::parallel, &Parallel::context>, "context-parallel degree",
       between(1, kMaxCount)},
      {"parallel", "virtual_stages", at<&C::parallel, &Parallel::virtual_stages>,
       "model chunks a pipeline stage holds", between(1, kMaxCount)},
      {"parallel", "sequence", at<&C::parallel, &Parallel::sequence>,
       "between the products of a layer, activations are sharded by token over the tensor axis"},
      {"parallel", "zero", at<&C::parallel, &Parallel::zero>,
       "sharded over data and context ranks: 0 nothing, 1 optimizer state, 2 and gradients, 3 and "
       "weights; gradients only where a rank runs one micro-batch a step",
       between(0, 3)},
      {"parallel", "kv_replication", at<&C::parallel, &Parallel::kv_replication>,
       "tensor ranks that share a key-value head; 0: as needed", between(0, kMaxCount)},
      {"parallel", "reduction_width", at<&C::parallel, &Parallel::reduction_width>,
       "virtual ranks of the canonical gradient sum, at least as many as data ranks; 0: that of "
       "the checkpoint, at the first start the data degree, with launch.nodes = MIN:MAX that of "
       "the most machines",
       between(0, kMaxCount)},
      {"parallel", "sums", at<&C::parallel, &Parallel::sums>,
       "`canonical`: gradients of GPUs are summed in one order, the same bits on every layout; "
       "`fast`: as NCCL sums them",
       one_of({"canonical", "fast"})},
      {"parallel", "overlap", at<&C::parallel, &Parallel::overlap>,
       "collectives travel while the rank computes; without it each is waited for where it begins, "
       "which takes less memory and keeps the bits"},
      {"parallel", "pairs", at<&C::parallel, &Parallel::pairs>,
       "the forward of a micro-batch runs beside the backward of the one before it, so that what "
       "either waits for travels while the other one computes; keeps the activations of two "
       "micro-batches, and the bits. For tensor, context or ZeRO 3 ranks with two micro-batches a "
       "virtual rank or more, with `overlap` and without a pipeline"},

      {"checkpoint", "every_steps", at<&C::checkpoint, &CheckpointConfig::every_steps>,
       "steps between checkpoints; 0: only when the run ends or is stopped", between(0, kMaxSteps)},
      {"checkpoint", "keep", at<&C::checkpoint, &CheckpointConfig::keep>,
       "newest checkpoints kept; 0: all", between(0, kMaxCount)},
      {"checkpoint", "permanent_every_steps",
       at<&C::checkpoint, &CheckpointConfig::permanent_every_steps>,
       "checkpoints at multiples of this are never removed; 0: none", between(0, kMaxSteps)},
      {"checkpoint", "memory_every_steps",
       at<&C::checkpoint, &CheckpointConfig::memory_every_steps>,
       "steps between copies of the state in the memory of this machine and of another one, from "
       "which a run continues after a failure; 0: none; -1: as often as costs less than 1 % of the "
       "time, where there are several workers and the memory is there",
       between(-1, kMaxSteps)},
      {"checkpoint", "async", at<&C::checkpoint, &CheckpointConfig::async>,
       "write in the background while training continues"},
      {"checkpoint", "best_by", at<&C::checkpoint, &CheckpointConfig::best_by>,
       "the validation loss, `validation_loss` or `validation_loss/NAME` of a validation set, "
       "whose best checkpoint is kept beside the newest; a validation with a new best is saved; "
       "empty: none"},
      {"checkpoint", "dir", at<&C::checkpoint, &CheckpointConfig::dir>,
       "where checkpoints go: a folder that all ranks see, or s3://bucket/name; empty: "
       "`checkpoints` in run.dir",
       a_path()},

      {"launch", "workers", at<&C::launch, &LaunchConfig::workers>,
       "workers on this machine, one process each; `skein train` starts them, unless a launcher "
       "did",
       between(1, 4096)},
      {"launch", "workers_per_process", at<&C::launch, &LaunchConfig::workers_per_process>,
       "with device.kind = \"pjrt\": workers that share a process, each with a device; collectives "
       "between them are part of the compiled programs. 0: all workers of the machine, with a "
       "pipeline those of a tensor and context group",
       between(0, 4096)},
      {"launch", "nodes", at<&C::launch, &LaunchConfig::nodes>,
       "machines of the run, `N` or `MIN:MAX`: run `skein train` on each, and they meet in "
       "launch.rendezvous"},
      {"launch", "supervise", at<&C::launch, &LaunchConfig::supervise>,
       "a single worker on one machine gets a process of its own and a supervisor, as several "
       "have: it is started again after a crash or a hang, and its state is copied to memory"},
      {"launch",
       "rendezvous",
       at<&C::launch, &LaunchConfig::rendezvous>,
       "where machines and ranks meet: a folder shared by all machines, or "
       "`etcd://host:port[,host:port…]/prefix`, with TLS `etcds://…`; empty: `rendezvous` in "
       "run.dir",
       {.is_path = true, .use = PlaceUse::kDiskOrEtcd}},
      {"launch", "secret_file", at<&C::launch, &LaunchConfig::secret_file>,
       "holds the run's secret, at least 16 bytes, the same on all machines, mode 0600 "
       "(SKEIN_JOB_SECRET overrides it); empty: a file that the run makes where it meets, with "
       "etcd in run.dir",
       a_path_of_a_disk()},
      {"launch", "etcd_ca_file", at<&C::launch, &LaunchConfig::etcd_ca_file>,
       "etcds://: the certificates of the authorities that sign those of etcd, in PEM; empty: "
       "ETCDCTL_CACERT, else the system's",
       a_path_of_a_disk()},
      {"launch", "etcd_cert_file", at<&C::launch, &LaunchConfig::etcd_cert_file>,
       "etcds://: this machine's certificate, in PEM; empty: ETCDCTL_CERT, else none",
       a_path_of_a_disk()},
      {"launch", "etcd_key_file", at<&C::launch, &LaunchConfig::etcd_key_file>,
       "its key, in PEM without a passphrase; empty: ETCDCTL_KEY", a_path_of_a_disk()},
      {"launch", "etcd_user", at<&C::launch, &LaunchConfig::etcd_user>,
       "the user of etcd that the run is; empty: with etcds:// that of ETCDCTL_USER, else none"},
      {"launch", "etcd_password_file", at<&C::launch, &LaunchConfig::etcd_password_file>,
       "holds that user's password, mode 0600; empty: ETCDCTL_PASSWORD, or behind the colon in "
       "ETCDCTL_USER",
       a_path_of_a_disk()},
      {"launch", "collective_timeout_s", at<&C::launch, &LaunchConfig::collective_timeout_s>,
       "a collective that takes longer has lost a peer; so has a start at which not all ranks "
       "arrive",
       above(0, 1e6)},
      {"launch", "hang_timeout_s", at<&C::launch, &LaunchConfig::hang_timeout_s>,
       "a worker that does nothing for longer is killed, and the workers are started again; its "
       "stacks are in its log",
       above(0, 1e6)},
      {"launch", "max_restarts", at<&C::launch, &LaunchConfig::max_restarts>,
       "restarts in a row that bring no new step before the run is given up; 0: any failure ends "
       "it",
       between(0, kMaxSteps)},
      {"launch", "health_checks", at<&C::launch, &LaunchConfig::health_checks>,
       "each machine checks itself before it trains and after each failure, while its workers end; "
       "a machine that fails is left out until it passes"},
      {"launch", "on_event", at<&C::launch, &LaunchConfig::on_event>,
       "a shell command for paging, run for each failure, alarm, lost machine and end of the run: "
       "the event comes as JSON on its standard input, its fields as SKEIN_EVENT_… in its "
       "environment; empty: none"},

      {"device", "kind", at<&C::device, &DeviceConfig::kind>,
       "what to run on; `auto` is `cuda` where this build and this machine have it, else `cpu`",
       one_of({"auto", "cpu", "cuda", "pjrt"})},
      {"device", "threads", at<&C::device, &DeviceConfig::threads>,
       "compute threads of a worker; 0: OMP_NUM_THREADS, else the cores divided by launch.workers",
       between(0, 4096)},
      {"device", "cpu", at<&C::device, &DeviceConfig::cpu>,
       "the instruction sets that kernels on a CPU may use; `auto`: SKEIN_CPU, else the best that "
       "it has. Ranks "
       "must have the same, or losses would depend on which rank computes what",
       one_of({"auto", "amx", "avx512-bf16", "avx512", "avx2", "sse4"})},
      {"device", "check_ops", at<&C::device, &DeviceConfig::check_ops>,
       "wait after each op on a GPU, so that an error names the op that made it; slow"},
      {"device", "pjrt_plugin", at<&C::device, &DeviceConfig::pjrt_plugin>,
       "with device.kind = \"pjrt\": the path of the plugin, a shared library that compiles "
       "StableHLO and runs it",
       a_path_of_a_disk()},
      {"device", "compile_cache", at<&C::device, &DeviceConfig::compile_cache>,
       "with \"pjrt\": the folder of this machine that keeps compiled programs for the next start, "
       "or s3://BUCKET/PREFIX, which machines fill for each other, behind the default folder; "
       "empty: SKEIN_CACHE/compiled, else ~/.cache/skein/compiled. `off`: none is kept",
       a_path(), kIgnore},
      {"device", "compile_cache_gb", at<&C::device, &DeviceConfig::compile_cache_gb>,
       "the most that the folder holds, in units of 1e9 bytes; programs that were not used for "
       "longest are removed first",
       above(0, 1e6), kIgnore},
      {"device", "compile_timeout_s", at<&C::device, &DeviceConfig::compile_timeout_s>,
       "with \"pjrt\": a compiler that takes longer for one program ends the run; 0: none",
       between(0, 1e6), kIgnore},
      {"device", "optimization_level", at<&C::device, &DeviceConfig::optimization_level>,
       "with \"pjrt\": how much the compiler does, 0 to 3, or options of the compiler, "
       "OPTION=VALUE with commas between; empty: its default"},
      {"device", "executions_in_flight", at<&C::device, &DeviceConfig::executions_in_flight>,
       "with \"pjrt\": programs that the host starts before it waits for the oldest of them; 0: "
       "it waits for each",
       between(0, 4096), kIgnore},

      {"log", "every_steps", at<&C::log, &LogConfig::every_steps>,
       "steps between progress lines; 0: not set, then a line every 10 s with the time of day, and "
       "none on a terminal, where a line is redrawn in any case. metrics.jsonl holds every step",
       between(0, kMaxSteps)},
      {"log", "tensorboard", at<&C::log, &LogConfig::tensorboard>,
       "write TensorBoard event files to run.dir/tensorboard"},
      {"log", "prometheus", at<&C::log, &LogConfig::prometheus>,
       "serve metrics for Prometheus at this host:port; empty: do not"},
      {"log", "trace_step", at<&C::log, &LogConfig::trace_step>,
       "the step whose ops are timed one by one, into trace-RANK.json in run.dir, for "
       "ui.perfetto.dev; 0: none",
       between(0, kMaxSteps)},

      {"validate", "every_steps", at<&C::validate, &ValidateConfig::every_steps>,
       "steps between validations; 0: none on the way. The end of the run validates in either "
       "case, where data.validation or data.validation_set names a corpus",
       between(0, kMaxSteps)},
      {"validate", "batches", at<&C::validate, &ValidateConfig::batches>,
       "the most rows that a validation reads of each lane; with a batch of data.lanes rows that "
       "is the number of batches. A set is read once, and its last batch is filled up with tokens "
       "that do not count; 0: all of the set",
       between(0, kMaxSteps)},
      {"validate", "before_training", at<&C::validate, &ValidateConfig::before_training>,
       "also validate before step 1, with the weights that the run begins with; recorded as step "
       "0"},

      {"plan", "hardware", at<&C::plan, &PlanConfig::hardware>,
       "what `skein plan` gives times and memory of: a description of machines, such as "
       "`{config_dir}/hardware/h100-8x.toml`; empty: this machine. --hardware overrides it; "
       "training does not read it",
       a_path(), kIgnore},
      {"plan", "ranks", at<&C::plan, &PlanConfig::ranks>,
       "ranks that `skein plan` plans for; 0: what [parallel] and [launch] say. --ranks overrides "
       "it; training does not read it",
       between(0, kMaxCount), kIgnore},
  };
}

}  // namespace

std::span<const ConfigField> config_fields() {
  static const std::vector<ConfigField> fields = make_fields();
  return fields;
}

std::vector<ConfigPath> config_paths(Config& config) {
  std::vector<ConfigPath> paths;
  for (const ConfigField& field : config_fields()) {
    const std::string key = fmt::format("{}.{}", field.section, field.key);
    const ConfigValue value = field.value(config);
    if (field.limits.is_path) paths.push_back({key, std::get<std::string*>(value)});
    if (const auto* sources = std::get_if<std::vector<DataSource>*>(&value)) {
      for (DataSource& source : **sources) paths.push_back({key, &source.path});
    }
  }
  for (EvaluateConfig& evaluation : config.evaluate) {
    paths.push_back({"evaluate.data", &evaluation.data});
    paths.push_back({"evaluate.include_path", &evaluation.include_path});
  }
  return paths;
}

}  // namespace skein
