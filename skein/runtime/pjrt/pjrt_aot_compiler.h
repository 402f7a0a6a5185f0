// The compiler of a PJRT plugin without its devices. A target is
//
//   h200x8          NVIDIA GPUs of a kind (a100, h100, h200, b200, b300, gb200, gb300) and their
//                   number, 8 to a machine. The plugin itself describes the GPU
//   v5p:4x4x4       TPUs, as libtpu names a topology
//   cpu             the devices of a CPU, as many as the program has replicas
//
// Source  github.com/openxla/xla, xla/pjrt/c/pjrt_c_api.h; the option `target_config` of
//         xla/pjrt/c/pjrt_c_api_gpu_internal.cc
#pragma once

#include <memory>
#include <string>

#include "skein/runtime/aot_compiler.h"

namespace skein {

// What a plugin for CPUs says; any other target needs no device.
std::unique_ptr<AotCompiler> make_pjrt_aot_compiler(const AotTarget& target);

// The text in which a plugin for GPUs describes `gpu` ("NVIDIA H200 141GB HBM3e"), out of the
// plugin's own file; "": it has none.
std::string gpu_description(const std::string& plugin, const std::string& gpu);

}  // namespace skein
