// The Llama family, and the parts that other families reuse: pre-norm decoders with rotary
// attention and a gated MLP.
//
//   each layer:  x = x + o_proj(attention(rope(qkv_proj(norm(x)))))
//                x = x + down_proj(silu(gate_proj(norm(x))) * up_proj(norm(x)))
//
// Source   Touvron et al., "Llama 2", arXiv 2307.09288; transformers modeling_llama.py
#pragma once

#include <vector>

#include "skein/model/decoder.h"
#include "skein/model/rotary.h"

namespace skein {

extern const FamilyDef llama_family;

struct LlamaConstants {
  double rms_norm_eps = 1e-6;
  RopeConfig rope;
  bool qkv_bias = false;
  bool output_bias = false;  // of o_proj
  bool mlp_bias = false;     // of gate, up and down
};

// Stores `constants` in config.own.
void set_constants(DecoderConfig& config, const LlamaConstants& constants);

// Reads the norms' epsilon and RoPE (norm_and_rope_keys).
LlamaConstants parse_norm_and_rope(const ConfigKeys& keys, const DecoderConfig& config);
void write_norm_and_rope(const DecoderConfig& config, Json& json);

// Members of FamilyDef for families that use LlamaConstants.
std::vector<ParameterSpec> llama_parameters(const DecoderConfig& config);
ValueId llama_layers(DecoderGraph& decoder, ValueId x);
std::vector<DecoderTable> llama_tables(const DecoderConfig& config, int64_t num_positions);

}  // namespace skein
