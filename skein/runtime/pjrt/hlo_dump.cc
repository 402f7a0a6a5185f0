#include "skein/runtime/pjrt/hlo_dump.h"

#include "skein/base/error.h"
#include "skein/base/files/file.h"
#include "skein/base/files/temporary_folder.h"
#include "skein/runtime/pjrt/compile_options.h"
#include "skein/runtime/pjrt/pjrt_library.h"

namespace skein {
namespace {

constexpr std::string_view kSuffix = ".before_optimizations.hlo.pb";
constexpr int64_t kMostBytes = int64_t{1} << 31;  // of a protocol buffer
constexpr int64_t kPartitions = 2;

// What the plugin says when it refuses the program, after it wrote its HLO to the folder.
std::string refusal_of(const PjrtClient& client, const std::string& text, int64_t num_replicas,
                       const std::string& folder) {
  const std::string options = compile_options(
      num_replicas, "xla_dump_to=" + folder + ",xla_dump_hlo_as_proto=true", kPartitions);
  PJRT_Program program{};
  program.struct_size = PJRT_Program_STRUCT_SIZE;
  program.code = const_cast<char*>(text.data());  // an interface for C; it is only read
  program.code_size = text.size();
  program.format = "mlir";
  program.format_size = 4;
  SKEIN_PJRT_ARGS(PJRT_Client_Compile, args);
  args.client = client.library().client;
  args.program = &program;
  args.compile_options = options.data();
  args.compile_options_size = options.size();
  PJRT_Error* error = client.library().api->PJRT_Client_Compile(&args);
  if (error != nullptr) return client.library().words_of(error);
  const PjrtExecutable unwanted(&client, args.executable);
  return "it compiled the program";
}

}  // namespace

stablehlo::HloModule dump_hlo(const std::string& plugin, const std::string& text,
                              int64_t num_replicas) {
  const PjrtClient client({.plugin = plugin, .num_devices = num_replicas * kPartitions});
  const TemporaryFolder folder("hlo");
  const std::string refusal = refusal_of(client, text, num_replicas, folder.path());
  for (const auto& entry : fs::directory_iterator(folder.path())) {
    if (entry.path().string().ends_with(kSuffix)) {
      return stablehlo::portable_hlo(read_file(entry.path(), kMostBytes));
    }
  }
  fail(ErrorCode::kUnsupported,
       "the PJRT plugin {} wrote no HLO of the program, expected a plugin of XLA for CPUs, such as "
       "pjrt_c_api_cpu_plugin.so of the package lammps-jax-pjrt-cpu: {}",
       plugin, refusal);
}

}  // namespace skein
