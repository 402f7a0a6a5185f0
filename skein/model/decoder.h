// Decoders and their families: the interface between models and the rest of Skein. A family is a
// folder of skein/model/ and a line of families.def; nothing else names one.
//
// Reads    a Hugging Face config.json, whose model_type names the family
// Names    parameters have their Hugging Face names, in transformers' order; graph inputs those
//          below
// Errors   parse_decoder throws Error{kInvalid | kNotFound} for invalid and missing values,
//          kUnsupported for an unknown family or feature; each names file, key, value found and
//          expected
// Source   transformers, configuration_*.py
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "skein/base/text/json.h"
#include "skein/ir/graph.h"
#include "skein/model/window.h"
#include "skein/tensor/dtype.h"

namespace skein {

class ConfigKeys;
class DecoderGraph;
struct FamilyDef;

// Names of the inputs and outputs of a decoder's graph; T = sequences * sequence_length.
namespace decoder_names {
inline constexpr const char* kTokens = "tokens";                   // i32[T]
inline constexpr const char* kLabels = "labels";                   // i32[T]
inline constexpr const char* kPositions = "positions";             // i32[T], within a document
inline constexpr const char* kAttentionStart = "attention_start";  // i32[T], begin of the document
inline constexpr const char* kSequence = "sequence";   // i32[T], a row of `pages`; -1: no token
inline constexpr const char* kPages = "pages";         // i32[sequences, pages of one]
inline constexpr const char* kHeadRows = "head_rows";  // i32[H], the tokens whose logits are wanted
inline constexpr const char* kHeadLabels = "head_labels";    // i32[H]
inline constexpr const char* kLogProb = "logprob";           // f32[H], of the labels
inline constexpr const char* kBest = "best";                 // i32[H], the likeliest tokens
inline constexpr const char* kBestLogProb = "best_logprob";  // f32[H], of the likeliest tokens
inline constexpr const char* kHeadInput = "final";           // output of the last norm
inline constexpr const char* kLossSum = "loss_sum";          // f64[exact_sum::kBins]
inline constexpr const char* kLastRow = "last_row";          // i32[1]
inline constexpr const char* kTokenLoss = "token_loss";      // f32[T]: -log p of each label
inline constexpr const char* kLogits = "logits";             // f32[1, V] of the last row
// Parameters that every decoder has; kHeadWeight only if it is not tied to the embedding.
inline constexpr const char* kEmbeddingWeight = "model.embed_tokens.weight";
inline constexpr const char* kHeadWeight = "lm_head.weight";
}  // namespace decoder_names

// Sizes and constants that every decoder has, and those of its family in `own`.
struct DecoderConfig {
  const FamilyDef* family = nullptr;
  int64_t hidden_size = 0;
  int64_t num_hidden_layers = 0;
  int64_t num_attention_heads = 0;
  int64_t num_key_value_heads = 0;
  int64_t head_dim = 0;
  int64_t intermediate_size = 0;
  int64_t vocab_size = 0;
  int64_t max_position_embeddings = 0;
  bool tie_word_embeddings = false;
  double initializer_range = 0.02;
  std::optional<int64_t> bos_token_id;
  std::vector<int64_t> eos_token_ids;
  std::optional<int64_t> pad_token_id;
  std::optional<int64_t> mask_token_id;  // of an encoder
  AttentionWindow window;
  std::vector<std::string> unknown_keys;  // of config.json, in no table (base/text/foreign_keys.h)
  std::shared_ptr<const void> own;        // the family's constants, of a type that only it knows

  int64_t query_size() const { return num_attention_heads * head_dim; }
  int64_t key_value_size() const { return num_key_value_heads * head_dim; }

  template <typename Constants>
  const Constants& constants() const {
    return *static_cast<const Constants*>(own.get());
  }
};

// The most tokens that Skein can give the model at a time, and the key of config.json that says so.
struct TextLimit {
  int64_t tokens = 0;
  std::string_view key;
};
TextLimit text_limit(const DecoderConfig& config);

// Whether both give the same config.json.
bool operator==(const DecoderConfig& a, const DecoderConfig& b);

// How a parameter is split over the tensor axes of a mesh (placement.h).
enum class Split : uint8_t {
  kWhole,
  kRows,          // output features are split: heads, features, vocabulary
  kKeyValueRows,  // the same for key-value heads, which several ranks may hold
  kColumns,       // input features are split
};

enum class Init : uint8_t {
  kNormal,
  kResidual,  // output projections: scaled initialisation divides by sqrt(2 layers)
  kOnes,
  kZeros,
};

struct ParameterSpec {
  std::string name;
  Shape shape;
  int layer = -1;  // -1: outside the layers
  Split split = Split::kRows;
  Init init = Init::kNormal;
  bool is_norm = false;        // no weight decay where optimizer.decay_norms is false
  bool is_bias = false;        // the same of optimizer.decay_biases
  bool is_embedding = false;   // and of optimizer.decay_embeddings
  bool shared = false;         // a tied embedding: used before and after the layers
  bool is_vocabulary = false;  // its rows are tokens (padded_vocabulary)
};

enum class DecoderPurpose {
  kTrain,     // output: kLossSum, to which the micro-batch's loss is added
  kScore,     // output: kTokenLoss
  kGenerate,  // output: kLogits
  kEmbed,     // output: kHeadInput, the hidden states behind the last norm
  kServe,     // outputs: kLogits, kLogProb, kBest and kBestLogProb of the rows of kHeadRows
};

// The cache of keys and values that kServe reads and extends (ops/paged_attention).
struct DecoderCache {
  int64_t num_pages = 0;
  int64_t page_size = 0;         // positions
  int64_t num_sequences = 0;     // that a program can attend to
  int64_t pages_a_sequence = 0;  // at most
  int64_t head_rows = 0;         // whose logits a program gives

  int64_t num_positions() const { return pages_a_sequence * page_size; }
};

struct DecoderOptions {
  DecoderPurpose purpose = DecoderPurpose::kTrain;
  DType compute_dtype = DType::kF32;
  int64_t sequences = 1;
  int64_t sequence_length = 0;
  // Ranks that the tokens will be split over: token blocks of the head are multiples of it.
  int64_t token_ranks = 1;
  // Tokens of a rank whose logits exist at a time; 0: as many as fit 64 MiB, at most 2048.
  int64_t head_block_tokens = 0;
  // Attention's attrs: a sequence may have several documents (data.document_mask), and sums have an
  // order of their own (precision.repeatable).
  bool documents = true;
  bool repeatable = true;
  // Ranks that the vocabulary will be split over. Where they do not divide it, the embedding and
  // the head have rows of zeros behind those of the model, to which the loss pays no heed.
  int64_t vocabulary_ranks = 1;
  DecoderCache cache = {};  // of kServe
  // Weights of products are the parameters "<name>.packed" (ops/packed_linear).
  bool packed_weights = false;
};

// The parameter that holds a weight for ops/packed_linear, and whether a graph with packed weights
// has it.
std::string packed_name(std::string_view weight);
bool is_product_weight(const DecoderConfig& config, const ParameterSpec& spec);

// A graph input that depends only on the model and on the length of the texts, which in training is
// that of a row: uploaded once, whole on every rank.
struct DecoderTable {
  std::string name;
  Shape shape;
  std::function<std::vector<float>(int64_t text_length)> values;
  int64_t changes_beyond = 0;  // longer texts have other values; 0: all have the same
  std::string choice;          // a line for people about what rows of num_positions tokens take
};

// A key of config.json that may also be given in [model].
struct ModelKey {
  enum class Kind { kInteger, kNumber, kBool, kString, kTable, kIntegerOrList };
  std::string_view key;
  Kind kind;
  std::string help;
};

// A row of families.def.
struct FamilyDef {
  std::string_view model_type;    // "llama"
  std::string_view architecture;  // "LlamaForCausalLM"
  // Tokens attend to those behind them, too, and the head finds masked tokens: the model is trained
  // on them, and cannot continue a text.
  bool is_encoder = false;
  // Defaults of absent keys, the same as in transformers.
  int64_t default_max_positions = 0;
  int64_t default_key_value_heads = 0;  // 0: as many as query heads
  int64_t default_head_dim = 0;         // 0: hidden_size / num_attention_heads, which must divide
  // A key that is null where [model] leaves it out, though not where config.json does.
  const char* null_inline = nullptr;
  // A key that transformers does not read of this family: Qwen2 has biases in attention whatever
  // attention_bias says.
  const char* unread_key = nullptr;
  // Whether transformers' AutoTokenizer uses the folder's tokenizer_config.json.
  bool auto_tokenizer = true;

  // The family's own keys of config.json: their list, how they are read into config.own, and how
  // they are written back.
  std::vector<ModelKey> (*keys)();
  void (*parse)(const ConfigKeys& keys, DecoderConfig& config);
  void (*write)(const DecoderConfig& config, Json& json);

  std::vector<ParameterSpec> (*parameters)(const DecoderConfig& config);
  // Builds the layers and the last norm (kHeadInput), between DecoderGraph's embedding and head.
  ValueId (*layers)(DecoderGraph& graph, ValueId x);
  std::vector<DecoderTable> (*tables)(const DecoderConfig& config, int64_t num_positions);
  // FLOPs of one token, forward and backward; see training_flops_per_token.
  double (*flops)(const DecoderConfig& config, int64_t sequence_length);
};

std::span<const FamilyDef* const> decoder_families();

// Throws Error{kUnsupported} for an encoder, which cannot score or continue a text.
void require_decoder(const DecoderConfig& config);

// `what` names the source in errors: a path, or "[model]" for inline keys. An object without
// vocab_size gets `default_vocab_size` (the tokenizer's); without either it is an error.
DecoderConfig parse_decoder(const Json& json, const std::string& what,
                            std::optional<int64_t> default_vocab_size = std::nullopt);

// Completes a model whose keys [model] gives, where nothing can be null (FamilyDef::null_inline).
void complete_inline_model(Json& json);

// The dtype that holds the stored tensors exactly, by config.json: "bfloat16", "float32", or fp32
// for "float16"; nullopt where it names none. Throws for any other name.
std::optional<DType> parse_hugging_face_dtype(const Json& json, const std::string& what);

// `dtype`: that of the exported tensors, kF32 or kBF16.
Json to_hugging_face_json(const DecoderConfig& config, DType dtype);

// The keys of every decoder, then those of the families.
std::span<const ModelKey> model_keys();
bool reads_key(const FamilyDef& family, std::string_view key);

std::vector<ParameterSpec> parameter_specs(const DecoderConfig& config);
int64_t num_parameters(const DecoderConfig& config);

// Floating-point operations of one token's forward and backward pass over a sequence of
// `sequence_length`: 6 per parameter of a matrix (embedding look-up excluded, head included) and
// 12 * layers * query_size * sequence_length / 2 for causal attention. Recomputation is not
// counted.
double training_flops_per_token(const DecoderConfig& config, int64_t sequence_length);

std::vector<DecoderTable> decoder_tables(const DecoderConfig& config, int64_t num_positions);

// Rows of the embedding and of the head in a graph.
int64_t padded_vocabulary(const DecoderConfig& config, int64_t vocabulary_ranks);

// Appends the forward phase. Returns the loss sum (kTrain), the token losses or the logits.
ValueId build_decoder(Graph& graph, const DecoderConfig& config, const DecoderOptions& options);

}  // namespace skein
