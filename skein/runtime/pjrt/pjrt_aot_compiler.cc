#include "skein/runtime/pjrt/pjrt_aot_compiler.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <cstdlib>

#include "skein/base/error.h"
#include "skein/base/files/file.h"
#include "skein/runtime/pjrt/compile_options.h"
#include "skein/runtime/pjrt/hlo_collectives.h"
#include "skein/runtime/pjrt/pjrt_library.h"

namespace skein {
namespace {

constexpr int64_t kGpusOfMachine = 8;

struct Gpu {
  std::string_view name, description;
};
constexpr std::array<Gpu, 7> kGpus = {{{"a100", "NVIDIA A100-SXM4-80GB"},
                                       {"h100", "NVIDIA H100 80GB HBM3"},
                                       {"h200", "NVIDIA H200 141GB HBM3e"},
                                       {"b200", "NVIDIA B200"},
                                       {"b300", "NVIDIA B300"},
                                       {"gb200", "NVIDIA GB200"},
                                       {"gb300", "NVIDIA GB300"}}};

struct GpuTarget {
  std::string description;
  int64_t machines = 1, gpus = 1;  // of each machine
};

// Of "h200x8"; nothing for a name of another form.
std::optional<GpuTarget> gpu_target(const std::string& name) {
  const size_t times = name.rfind('x');
  if (times == std::string::npos) return std::nullopt;
  const auto gpu = std::find_if(kGpus.begin(), kGpus.end(), [&](const Gpu& one) {
    return one.name == std::string_view(name).substr(0, times);
  });
  if (gpu == kGpus.end()) return std::nullopt;
  int64_t count = 0;
  const char* end = name.data() + name.size();
  const auto [stop, error] = std::from_chars(name.data() + times + 1, end, count);
  if (error != std::errc() || stop != end || count < 1 ||
      (count > kGpusOfMachine && count % kGpusOfMachine != 0)) {
    fail(ErrorCode::kUsage, "--compile {}: expected a number of GPUs up to {}, or a multiple of it",
         name, kGpusOfMachine);
  }
  return GpuTarget{std::string(gpu->description), std::max<int64_t>(1, count / kGpusOfMachine),
                   std::min(count, kGpusOfMachine)};
}

PJRT_NamedValue named(std::string_view name, const std::string& value) {
  PJRT_NamedValue option{};
  option.struct_size = PJRT_NamedValue_STRUCT_SIZE;
  option.name = name.data();
  option.name_size = name.size();
  option.type = PJRT_NamedValue_kString;
  option.string_value = value.data();
  option.value_size = value.size();
  return option;
}

// Plugins write much to stderr, and libtpu asks the machine's cloud what it runs on: neither is
// wanted, unless the user says otherwise.
void quiet_plugins() {
  ::setenv("TF_CPP_MIN_LOG_LEVEL", "2", /*overwrite=*/0);
  ::setenv("TPU_MIN_LOG_LEVEL", "2", /*overwrite=*/0);
  ::setenv("TPU_SKIP_MDS_QUERY", "1", /*overwrite=*/0);
  ::setenv("TPU_WORKER_HOSTNAMES", "localhost", /*overwrite=*/0);
}

double number_of(const PJRT_NamedValue& value) {
  return value.type == PJRT_NamedValue_kFloat ? static_cast<double>(value.float_value)
                                              : static_cast<double>(value.int64_value);
}

// What the compiler says of a program. Not every plugin answers every question.
AotProgram describe(const PjrtLibrary& library, PJRT_Executable* executable) {
  AotProgram program;
  program.memory = library.memory_of(executable);
  SKEIN_PJRT_ARGS(PJRT_Executable_GetCostAnalysis, cost);
  cost.executable = executable;
  if (library.words_of(library.api->PJRT_Executable_GetCostAnalysis(&cost)).empty()) {
    for (size_t i = 0; i < cost.num_properties; ++i) {
      const PJRT_NamedValue& value = cost.properties[i];
      const std::string_view name(value.name, value.name_size);
      if (name == "flops") program.flops = number_of(value);
      if (name == "bytes accessed") program.bytes_accessed = number_of(value);
      // Negative where a part of the program has no known time.
      if (name == "optimal_seconds" && number_of(value) > 0) {
        program.optimal_seconds = number_of(value);
      }
    }
  }
  PJRT_Program hlo{};
  hlo.struct_size = PJRT_Program_STRUCT_SIZE;
  SKEIN_PJRT_ARGS(PJRT_Executable_OptimizedProgram, args);
  args.executable = executable;
  args.program = &hlo;
  const auto ask = [&] {
    return library.words_of(library.api->PJRT_Executable_OptimizedProgram(&args)).empty();
  };
  if (!ask()) return program;
  std::string bytes(hlo.code_size, '\0');
  hlo.code = bytes.data();
  if (ask()) program.collectives = hlo_collectives(bytes, {hlo.format, hlo.format_size});
  return program;
}

PJRT_Program program_of(const std::string& text) {
  PJRT_Program program{};
  program.struct_size = PJRT_Program_STRUCT_SIZE;
  program.code = const_cast<char*>(text.data());  // an interface for C; it is only read
  program.code_size = text.size();
  program.format = "mlir";
  program.format_size = 4;
  return program;
}

// For devices that are not here.
class TopologyCompiler : public AotCompiler {
 public:
  explicit TopologyCompiler(const AotTarget& target)
      : target_(target.name), level_(target.level), library_(target.plugin, "--plugin") {
    SKEIN_PJRT_ARGS(PJRT_TopologyDescription_Create, create);
    std::string description, shape;
    std::array<PJRT_NamedValue, 2> options{};
    if (const auto gpus = gpu_target(target_)) {
      description = gpu_description(target.plugin, gpus->description);
      if (description.empty()) {
        fail(ErrorCode::kUsage, "--compile {}: the plugin {} has no description of an '{}'",
             target_, target.plugin, gpus->description);
      }
      shape = fmt::format("1x{}x{}", gpus->machines, gpus->gpus);
      options = {named("target_config", description), named("topology", shape)};
      create.create_options = options.data();
      create.num_options = options.size();
    } else {
      create.topology_name = target_.data();
      create.topology_name_size = target_.size();
    }
    const std::string words =
        library_.words_of(library_.api->PJRT_TopologyDescription_Create(&create));
    if (!words.empty()) {
      fail(ErrorCode::kUsage, "--compile {}: the plugin {} knows no such target: {}", target_,
           target.plugin, words);
    }
    topology_ = create.topology;
    SKEIN_PJRT_ARGS(PJRT_TopologyDescription_GetDeviceDescriptions, devices);
    devices.topology = topology_;
    library_.check(library_.api->PJRT_TopologyDescription_GetDeviceDescriptions(&devices),
                   "list its devices");
    num_devices_ = static_cast<int64_t>(devices.num_descriptions);
  }
  ~TopologyCompiler() override {
    SKEIN_PJRT_ARGS(PJRT_TopologyDescription_Destroy, destroy);
    destroy.topology = topology_;
    library_.api->PJRT_TopologyDescription_Destroy(&destroy);
  }

  std::string platform() const override {
    SKEIN_PJRT_ARGS(PJRT_TopologyDescription_PlatformName, name);
    name.topology = topology_;
    library_.check(library_.api->PJRT_TopologyDescription_PlatformName(&name), "tell its platform");
    SKEIN_PJRT_ARGS(PJRT_TopologyDescription_PlatformVersion, version);
    version.topology = topology_;
    library_.check(library_.api->PJRT_TopologyDescription_PlatformVersion(&version),
                   "tell its version");
    return platform_text({name.platform_name, name.platform_name_size},
                         {version.platform_version, version.platform_version_size});
  }

  AotProgram compile(const std::string& name, const std::string& text,
                     int64_t num_replicas) override {
    if (num_replicas > num_devices_) {
      fail(ErrorCode::kUsage,
           "--compile {}: {} ranks run the programs of a stage, and the target has {} devices: "
           "expected at least as many; name a larger target, or give --ranks",
           target_, num_replicas, num_devices_);
    }
    const PJRT_Program program = program_of(text);
    const std::string options = compile_options(num_replicas, level_);
    SKEIN_PJRT_ARGS(PJRT_Compile, args);
    args.topology = topology_;
    args.program = &program;
    args.compile_options = options.data();
    args.compile_options_size = options.size();
    const auto start = std::chrono::steady_clock::now();
    library_.check(
        library_.api->PJRT_Compile(&args),
        fmt::format("compile {}, {} bytes of StableHLO, for {}", name, text.size(), target_));
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
    const auto release = [&](PJRT_Executable* executable) { library_.destroy(executable); };
    const std::unique_ptr<PJRT_Executable, decltype(release)> executable(args.executable, release);
    AotProgram compiled = describe(library_, executable.get());
    compiled.compile_seconds = took.count();
    return compiled;
  }

 private:
  const std::string target_, level_;
  const PjrtLibrary library_;
  PJRT_TopologyDescription* topology_ = nullptr;
  int64_t num_devices_ = 0;
};

// A plugin for CPUs describes no topology: its devices are opened, and nothing runs on them.
class CpuCompiler : public AotCompiler {
 public:
  explicit CpuCompiler(AotTarget target) : target_(std::move(target)) { open(1); }

  std::string platform() const override { return client_->platform(); }

  AotProgram compile(const std::string&, const std::string& text, int64_t num_replicas) override {
    if (num_replicas > client_->num_devices()) open(num_replicas);
    const auto start = std::chrono::steady_clock::now();
    const std::unique_ptr<PjrtExecutable> executable =
        client_->compile(text, num_replicas, target_.level);
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
    const PjrtLibrary& library = client_->library();
    SKEIN_PJRT_ARGS(PJRT_LoadedExecutable_GetExecutable, args);
    args.loaded_executable = executable->get();
    library.check(library.api->PJRT_LoadedExecutable_GetExecutable(&args), "describe a program");
    AotProgram compiled = describe(library, args.executable);
    library.destroy(args.executable);
    compiled.compile_seconds = took.count();
    return compiled;
  }

 private:
  void open(int64_t num_devices) {
    client_ = nullptr;
    client_ = std::make_unique<PjrtClient>(
        PjrtOptions{.plugin = target_.plugin, .num_devices = num_devices});
  }

  AotTarget target_;
  std::unique_ptr<PjrtClient> client_;
};

}  // namespace

std::unique_ptr<AotCompiler> make_pjrt_aot_compiler(const AotTarget& target) {
  quiet_plugins();
  if (target.name == "cpu") return std::make_unique<CpuCompiler>(target);
  return std::make_unique<TopologyCompiler>(target);
}

std::string gpu_description(const std::string& plugin, const std::string& gpu) {
  const MappedFile file(plugin);
  const std::string_view bytes = file.text();
  const size_t found = bytes.find(fmt::format("\ndevice_description_str: \"{}\"\n", gpu));
  if (found == std::string_view::npos) return {};
  const size_t begin = bytes.rfind('\0', found) + 1;  // npos + 1 is 0
  return std::string(bytes.substr(begin, bytes.find('\0', found) - begin));
}

}  // namespace skein
