// What compilers for AWS Trainium are known to refuse, or to compute otherwise than the text says,
// found in the text of a module before it goes to them.
//
// Known    64-bit numbers run as 32-bit ones, F8E4M3FN, complex numbers, dynamic shapes, loops
//          whose number of turns is no constant, branches, sorts, generators of random numbers,
//          callbacks, integers in products and in sums over ranks, custom calls of other vendors.
//          Whether neuronx-cc takes what is left is known only to whoever runs it
// Source   Neuron's documentation: compiler error codes NCC_E…, the CLI reference (--native-int64,
//          --implicit-integer-downcast), "JAX NeuronX Known Issues"; pytorch/xla pull request 8835
//          (f64 is lowered as f32). docs/trainium.md has the list
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace skein::stablehlo {

struct NeuronLack {
  std::string function;   // of the module: the op's name and a number
  std::string operation;  // "stablehlo.sort"; of a signature "an argument"
  std::string reason;
  int64_t line = 0;  // the first one, from 1
  int64_t count = 0;
};

// Once for each function, operation and reason, in the order of the text.
std::vector<NeuronLack> what_neuron_lacks(std::string_view text);
// "adamw_3, line 120: stablehlo.convert: f64 … (4 times)"
std::string to_string(const NeuronLack& lack);

}  // namespace skein::stablehlo
