// What Neuron's PJRT plugin, libneuronpjrt.so, expects of the process that opens it: variables of
// the environment, and in some versions a Python that runs in the process, by which it calls the
// compiler. Never run on a Trainium: tests judge it by a plugin of their own.
//
// Variables  a variable that is set is left alone. One line of the log says which were set, and
//            which were there
// Processes  each is a world of its own for Neuron's runtime, with cores of its own: Skein itself
//            exchanges between processes. NEURON_PJRT_PROCESSES_NUM_DEVICES of several processes
//            is warned of
// Python     started if the plugin's file names functions of Python (libneuronxla 2 does). The
//            library is SKEIN_PYTHON_LIBRARY, or that of the version in whose site-packages the
//            plugin lies. Its modules are found there. No thread keeps Python's lock afterwards
// Errors     Error{kUsage}: no such library, or Python does not find the module libneuronxla
// Source     Neuron's documentation (variables of JAX NeuronX and of the runtime); the start of
//            Python: Reactant.jl, src/accelerators/Trainium.jl; the version of the interface: ZML,
//            platforms/neuron/libpjrt_neuron.zig
#pragma once

#include <cstdint>
#include <map>
#include <string>

namespace skein {

struct NeuronCores {
  int64_t first = 0;  // of the machine
  int64_t count = 1;
};

// What variables should have. `product`: the machine's name, such as "trn1.32xlarge", of
// /sys/class/dmi/id/product_name.
std::map<std::string, std::string> neuron_variables(const std::string& product,
                                                    const NeuronCores& cores);

// Prepares the process for the plugin at this path, which is opened next. Once is enough; further
// calls do nothing.
void prepare_for_neuron(const std::string& plugin, const NeuronCores& cores);

}  // namespace skein
