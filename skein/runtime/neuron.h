// AWS Trainium, as far as more than the device itself must know of it.
#pragma once

#include <filesystem>
#include <string>

namespace skein {

// Whether a PJRT plugin is Neuron's, which is told by its name, libneuronpjrt.so.
inline bool is_neuron_plugin(const std::string& plugin) {
  return std::filesystem::path(plugin).filename().string().starts_with("libneuronpjrt");
}

}  // namespace skein
