#include "skein/config/other_words.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <vector>

namespace skein {
namespace {

constexpr OtherWord kWords[] = {
    {"batch size", "batch_size global_batch_size train_batch_size total_batch_size gbs bs",
     "batch.global_sequences",
     "rows of `data.sequence_length` tokens in one update, of all workers together", true},
    {"micro-batch size",
     "micro_batch_size microbatch_size mbs per_device_train_batch_size per_device_batch_size "
     "device_batch_size local_batch_size train_micro_batch_size_per_gpu",
     "batch.micro_sequences", "rows that a data rank runs at once"},
    {"gradient accumulation",
     "gradient_accumulation gradient_accumulation_steps grad_accum grad_accum_steps "
     "accumulate_grad_batches accumulation_steps num_micro_batches num_microbatches",
     "",
     "follows from `batch.global_sequences` / (`batch.micro_sequences` · data ranks), the "
     "micro-batches of a rank and step",
     true},
    {"context length, block size",
     "seq_len seq_length max_seq_len max_seq_length max_sequence_length block_size context_length "
     "context_size n_ctx max_length",
     "data.sequence_length", "tokens in a row of the batch"},
    {"steps, iterations",
     "max_steps max_iters train_iters num_steps total_steps train_steps num_train_steps "
     "max_train_steps iterations",
     "run.steps", "updates in the whole run"},
    {"epochs", "num_train_epochs num_epochs max_epochs n_epochs", "run.epochs",
     "in place of `run.steps`"},
    {"token budget", "max_tokens total_tokens train_tokens num_tokens token_budget", "run.tokens",
     "in place of `run.steps`"},
    {"learning rate", "lr peak_lr max_lr base_lr peak_learning_rate", "optimizer.learning_rate",
     "the peak"},
    {"minimum learning rate", "min_lr lr_min eta_min final_lr end_lr lr_end",
     "optimizer.min_learning_rate", "the floor"},
    {"learning-rate schedule",
     "lr_scheduler lr_scheduler_type lr_schedule lr_decay_style scheduler scheduler_type",
     "optimizer.schedule", "`cosine`, `linear` or `constant`"},
    {"warm-up", "warmup warmup_iters warmup_ratio lr_warmup_iters lr_warmup_steps num_warmup_steps",
     "optimizer.warmup_steps", "in steps; a tenth of the run where it is left out"},
    {"WSD, trapezoid",
     "wsd trapezoid trapezoidal warmup_stable_decay stable_steps hold_steps num_stable_steps",
     "optimizer.constant_steps",
     "`schedule = \"linear\"` with `warmup_steps`, `constant_steps` at the peak and `decay_steps`",
     true},
    {"decay of the learning rate", "lr_decay_iters lr_decay_steps decay_iters cooldown_steps",
     "optimizer.decay_steps", "the decay alone, without warm-up and `constant_steps`"},
    {"warm restarts",
     "cosine_with_restarts warm_restarts cosine_restarts sgdr num_cycles restarts t_mult", "",
     "no schedule rises again: begin another run with `model.init_from = CHECKPOINT`, weights "
     "alone, and a warm-up of its own",
     true},
    {"weight decay", "wd l2", "optimizer.weight_decay", "decoupled, as AdamW's"},
    {"betas", "betas adam_beta1 adam_beta2", "optimizer.beta1 optimizer.beta2", "of AdamW"},
    {"Adam's epsilon", "eps adam_eps adam_epsilon", "optimizer.epsilon", ""},
    {"gradient clipping",
     "max_grad_norm grad_clip clip_grad clip_grad_norm gradient_clipping gradient_clip_val "
     "gradient_clip max_norm grad_norm_clip",
     "optimizer.clip_norm", "by the global norm"},
    {"optimizer", "optim optimizer_name optimizer_type optimizer_class", "optimizer.name", ""},
    {"precision, dtype",
     "dtype torch_dtype param_dtype compute_dtype mixed_precision amp bf16 fp16 fp8 half",
     "precision.mode", "fp16 is not there"},
    {"activation checkpointing",
     "gradient_checkpointing activation_checkpointing checkpoint_activations recompute_granularity "
     "remat rematerialization activation_checkpoint",
     "memory.recompute", ""},
    {"CPU offload", "cpu_offload offload optimizer_offload zero_offload",
     "memory.offload_optimizer memory.offload_activations", "to the host's memory"},
    {"DP, DDP",
     "dp dp_size dp_degree ddp data_parallel data_parallel_size data_parallel_degree "
     "data_parallel_replicate_degree",
     "parallel.data", "data-parallel degree; 0: the workers that the other degrees leave", true},
    {"FSDP, ZeRO",
     "fsdp fsdp2 hsdp zero_stage zero_optimization zero1 zero2 zero3 deepspeed sharding_strategy "
     "fsdp_size data_parallel_shard_degree use_distributed_optimizer",
     "parallel.zero", "3 shards weights, as FSDP's FULL_SHARD; 2 gradients; 1 optimizer state",
     true},
    {"TP",
     "tp tp_size tp_degree tensor_parallel tensor_parallel_size tensor_parallel_degree "
     "tensor_model_parallel_size model_parallel_size mp_size",
     "parallel.tensor", "tensor-parallel degree", true},
    {"PP",
     "pp pp_size pp_degree pipeline_parallel pipeline_parallel_size pipeline_parallel_degree "
     "pipeline_model_parallel_size num_stages",
     "parallel.pipeline", "pipeline stages; `parallel.virtual_stages` interleaves them", true},
    {"CP, ring attention",
     "cp cp_size cp_degree context_parallel context_parallel_size context_parallel_degree "
     "ring_attention ulysses",
     "parallel.context", "context-parallel degree; keys and values are gathered whole", true},
    {"SP", "sp sequence_parallel sequence_parallelism", "parallel.sequence",
     "of the residual stream, over the tensor ranks"},
    {"EP, mixture of experts",
     "ep ep_size expert_parallel expert_parallel_size expert_model_parallel_size num_experts moe "
     "num_local_experts",
     "", "not there"},
    {"GPUs, processes of a node",
     "nproc_per_node num_gpus gpus n_gpus devices gpus_per_node num_processes world_size",
     "launch.workers", "one a device; on CPUs one a group of cores"},
    {"nodes", "nnodes num_nodes n_nodes", "launch.nodes", ""},
    {"MFU, HFU", "mfu hfu model_flops_utilisation", "",
     "no key: `peak_utilization` of each step in [metrics](metrics_format.md), where the peak of "
     "the device is known; `matmul_ceiling_share` is of what this machine was measured to do",
     true},
    {"perplexity", "ppl perplexity", "data.validation validate.every_steps",
     "the exponential of `validation_loss`, which is in nats a token", true},
    {"evaluation during training",
     "eval_steps eval_interval eval_every eval_freq val_check_interval evaluation_strategy",
     "validate.every_steps", "a loss; with `data.validation`"},
    {"size of an evaluation",
     "eval_iters eval_batches limit_val_batches val_batches max_eval_steps", "validate.batches",
     ""},
    {"fine-tuning, continued pre-training",
     "finetune fine_tune finetuning finetune_from model_name_or_path pretrained from_pretrained "
     "pretrained_model pretrained_model_name_or_path init_checkpoint load_weights",
     "model.init_from",
     "a Hugging Face folder or a checkpoint: its weights, in a run of its own; of conversations "
     "the loss may be that of answers alone: data.loss_on",
     true},
    {"LoRA, adapters", "lora lora_rank lora_r lora_alpha peft qlora adapter", "",
     "not there: every weight is trained"},
    {"resuming", "resume_from resume_from_checkpoint load load_checkpoint load_dir ckpt_path",
     "run.resume",
     "the same command resumes by itself; with a path a run begins from another run's state"},
    {"output folder", "output_dir out_dir save_dir log_dir logdir default_root_dir exp_dir",
     "run.dir", ""},
    {"saving", "save_steps save_interval save_every save_freq checkpoint_interval ckpt_interval",
     "checkpoint.every_steps", ""},
    {"checkpoints that are kept", "save_total_limit keep_last keep_last_n max_to_keep save_top_k",
     "checkpoint.keep", "the newest"},
    {"logging", "logging_steps log_interval log_every log_freq print_every", "log.every_steps",
     "of the progress line; metrics.jsonl has every step"},
    {"Weights & Biases",
     "wandb use_wandb wandb_project wandb_run_name report_to wandb_entity mlflow comet", "",
     "no key: `metrics.jsonl` and TensorBoard's files are on the disk, and [ten lines of "
     "Python](metrics_format.md#weights--biases) send them there"},
    {"data set", "dataset dataset_path dataset_name data_path train_data train_file train_dataset",
     "data.train", "a corpus that `skein data ingest` makes"},
    {"validation data",
     "val_data val_file valid_data validation_file eval_data eval_dataset validation_data",
     "data.validation", ""},
    {"data mixture", "mixture blend data_blend data_mix data_mixture data_weights sampling_weights",
     "data.source", "`[[data.source]]` with `path` and `weight`"},
    {"tokenizer", "tokenizer_path tokenizer_name tokenizer_name_or_path vocab_file tokenizer_model",
     "data.tokenizer", "a folder"},
    {"packing, document masking",
     "packing pack_sequences reset_attention_mask reset_position_ids intra_document_masking "
     "eod_mask_loss",
     "data.document_mask", "rows are always packed"},
    {"layers", "num_layers n_layer n_layers depth", "model.num_hidden_layers", ""},
    {"width", "d_model n_embd dim hidden_dim embed_dim embedding_size", "model.hidden_size", ""},
    {"heads", "n_head n_heads num_heads", "model.num_attention_heads", ""},
    {"key-value heads, query groups", "n_kv_head n_kv_heads num_kv_heads num_query_groups",
     "model.num_key_value_heads", ""},
    {"width of the MLP", "d_ff ffn_dim ffn_hidden_size mlp_dim ffn_size", "model.intermediate_size",
     ""},
    {"random seed", "random_seed manual_seed rng_seed", "run.seed", ""},
    {"compilation, flash attention, determinism",
     "compile torch_compile use_flash_attention use_flash_attn flash_attention flash_attn "
     "attn_implementation deterministic",
     "", "always, without a key"},
};

struct OtherValue {
  std::string_view key;
  std::string_view values;   // elsewhere, between spaces, in small letters with underscores
  std::string_view meaning;  // what to write here
};

constexpr OtherValue kValues[] = {
    {"precision.mode", "bfloat16 bf16_true bf16_mixed bf16_full torch.bfloat16",
     "\"mixed\" keeps fp32 master weights beside bf16, \"bf16-sr\" rounds stochastically and keeps "
     "none"},
    {"precision.mode", "fp16 float16 half fp16_mixed 16_mixed torch.float16",
     "fp16 is not there: \"mixed\" and \"bf16-sr\" compute in bf16, which needs no loss scale"},
    {"precision.mode", "float32 float single 32_true no torch.float32 tf32", "\"fp32\""},
    {"precision.mode", "float8 fp8_e4m3 e4m3 transformer_engine hybrid", "\"fp8\""},
    {"precision.moments", "bfloat16 16", "\"bf16\""},
    {"precision.moments", "float32 32", "\"fp32\""},
    {"memory.recompute", "true on yes 1 all block uniform",
     "\"full\" computes whole layers again, \"selective\" what is cheap to compute again"},
    {"memory.recompute", "false off no 0", "\"none\""},
    {"optimizer.schedule", "constant_with_warmup warmup",
     "\"constant\", with optimizer.warmup_steps"},
    {"optimizer.schedule", "cosine_with_min_lr cosine_annealing cosineannealinglr",
     "\"cosine\", with optimizer.min_learning_rate"},
    {"optimizer.schedule", "inverse_sqrt inverse_square_root polynomial exponential step noam",
     "that one is not there"},
    {"device.kind", "gpu nvidia gpus cuda:0", "\"cuda\""},
    {"run.on_divergence", "rollback roll_back_and_skip skip", "\"roll_back\""},
    {"run.on_divergence", "abort fail error exit raise", "\"stop\""},
};

std::string lowered(std::string_view name) {
  std::string result(name);
  for (char& c : result) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
    if (c == '-') c = '_';
  }
  return result;
}

std::vector<std::string_view> split(std::string_view text) {
  std::vector<std::string_view> words;
  while (!text.empty()) {
    const size_t end = std::min(text.find(' '), text.size());
    words.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return words;
}

bool contains(const std::vector<std::string_view>& names, std::string_view wanted) {
  return std::find(names.begin(), names.end(), wanted) != names.end();
}

std::string in_backquotes(std::string_view words) {
  return words.empty() ? "" : fmt::format("`{}`", fmt::join(split(words), "`, `"));
}

// Markdown as it is read in a terminal: without backquotes and links.
std::string plain(std::string_view markdown) {
  std::string text;
  for (size_t i = 0; i < markdown.size(); ++i) {
    if (markdown[i] == '`' || markdown[i] == '[') continue;
    if (markdown.substr(i).starts_with("](")) {
      const size_t end = markdown.find(')', i);
      text += fmt::format(" (docs/{})", markdown.substr(i + 2, end - i - 2));
      i = end;
      continue;
    }
    text += markdown[i];
  }
  return text;
}

}  // namespace

std::span<const OtherWord> other_words() { return kWords; }

const OtherWord* find_other_word(std::string_view name) {
  const std::string wanted = lowered(name);
  for (const OtherWord& word : kWords) {
    if (contains(split(word.names), wanted)) return &word;
  }
  return nullptr;
}

std::vector<std::string> keys_of(const OtherWord& word) {
  const auto keys = split(word.keys);
  return {keys.begin(), keys.end()};
}

std::string explain_other_word(const OtherWord& word, std::string_view section) {
  if (word.keys.empty()) return fmt::format("{}: {}", word.word, plain(word.meaning));
  std::vector<std::string> keys;
  for (const std::string& full : keys_of(word)) {
    const std::string own = full.substr(0, full.find('.')), key = full.substr(own.size() + 1);
    keys.push_back(own == section ? key : fmt::format("{} in [{}]", key, own));
  }
  const std::string meaning = word.meaning.empty() ? "" : fmt::format(" ({})", plain(word.meaning));
  return fmt::format("did you mean {}?{}", fmt::join(keys, " and "), meaning);
}

std::string advice_on_word(std::string_view name) {
  const OtherWord* word = find_other_word(name);
  return word == nullptr ? "" : "; " + explain_other_word(*word, "");
}

std::string explain_other_value(std::string_view key, std::string_view value) {
  const std::string wanted = lowered(value);
  for (const OtherValue& one : kValues) {
    if (one.key == key && contains(split(one.values), wanted)) {
      return fmt::format("; for {}: {}", value, one.meaning);
    }
  }
  // The name of a schedule is a word of its own: "wsd".
  const OtherWord* word = key == "optimizer.schedule" ? find_other_word(value) : nullptr;
  return word == nullptr ? "" : fmt::format("; {}", explain_other_word(*word, "optimizer"));
}

std::string plain_meaning(const OtherWord& word) { return plain(word.meaning); }

std::string other_words_table() {
  std::string text = "| word | as other programs write it | here |\n|---|---|---|\n";
  for (const OtherWord& word : kWords) {
    const std::string keys = in_backquotes(word.keys);
    const char* between = !keys.empty() && !word.meaning.empty() ? ": " : "";
    text += fmt::format("| {} | {} | {}{}{} |\n", word.word, in_backquotes(word.names), keys,
                        between, word.meaning);
  }
  return text;
}

std::string other_words_help() {
  std::string text =
      "Words of other programs, and the keys here (docs/configuration.md has more):\n";
  for (const OtherWord& word : kWords) {
    if (!word.in_help) continue;
    const std::string keys = fmt::format("{}", fmt::join(split(word.keys), ", "));
    const char* between = !keys.empty() && !word.meaning.empty() ? ": " : "";
    text += fmt::format("  {}\n      {}{}{}\n", word.word, keys, between, plain(word.meaning));
  }
  return text;
}

}  // namespace skein
