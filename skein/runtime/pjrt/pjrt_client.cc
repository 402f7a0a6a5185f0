#include "skein/runtime/pjrt/pjrt_client.h"

#include <dlfcn.h>
#include <pjrt_c_api.h>

#include <filesystem>

#include "skein/base/error.h"

// The arguments of a function of the C interface, empty.
#define SKEIN_PJRT_ARGS(function, name) \
  function##_Args name{};               \
  name.struct_size = function##_Args_STRUCT_SIZE

namespace skein {

struct PjrtClient::Library {
  const PJRT_Api* api = nullptr;
  PJRT_Client* client = nullptr;
  std::vector<PJRT_Device*> devices;
  std::string plugin;
  std::string platform;

  // Throws what the plugin says, if it says anything.
  void check(PJRT_Error* error, std::string_view doing) const {
    if (error == nullptr) return;
    SKEIN_PJRT_ARGS(PJRT_Error_Message, message);
    message.error = error;
    api->PJRT_Error_Message(&message);
    const std::string text(message.message, message.message_size);
    SKEIN_PJRT_ARGS(PJRT_Error_Destroy, destroy);
    destroy.error = error;
    api->PJRT_Error_Destroy(&destroy);
    fail(ErrorCode::kInternal, "the PJRT plugin {} could not {}: {}", plugin, doing, text);
  }

  // Waits for the event, and releases it.
  void await(PJRT_Event* event, std::string_view doing) const {
    SKEIN_PJRT_ARGS(PJRT_Event_Await, wait);
    wait.event = event;
    PJRT_Error* error = api->PJRT_Event_Await(&wait);
    SKEIN_PJRT_ARGS(PJRT_Event_Destroy, destroy);
    destroy.event = event;
    api->PJRT_Event_Destroy(&destroy);
    check(error, doing);
  }
};

namespace {

PJRT_Buffer_Type buffer_type(stablehlo::Element element) {
  using stablehlo::Element;
  switch (element) {
    case Element::kI1:
      return PJRT_Buffer_Type_PRED;
    case Element::kU8:
      return PJRT_Buffer_Type_U8;
    case Element::kU16:
      return PJRT_Buffer_Type_U16;
    case Element::kI32:
      return PJRT_Buffer_Type_S32;
    case Element::kU32:
      return PJRT_Buffer_Type_U32;
    case Element::kI64:
      return PJRT_Buffer_Type_S64;
    case Element::kU64:
      return PJRT_Buffer_Type_U64;
    case Element::kF8E4M3:
      return PJRT_Buffer_Type_F8E4M3FN;
    case Element::kF8E5M2:
      return PJRT_Buffer_Type_F8E5M2;
    case Element::kBF16:
      return PJRT_Buffer_Type_BF16;
    case Element::kF32:
      return PJRT_Buffer_Type_F32;
    case Element::kF64:
      return PJRT_Buffer_Type_F64;
  }
  return PJRT_Buffer_Type_INVALID;
}

void append_varint(std::string& bytes, uint64_t value) {
  for (; value >= 0x80; value >>= 7) bytes.push_back(static_cast<char>(value | 0x80));
  bytes.push_back(static_cast<char>(value));
}

// A field of a protocol buffer that holds bytes.
void append_field(std::string& message, char number, const std::string& bytes) {
  message.push_back(static_cast<char>(number << 3 | 2));
  append_varint(message, bytes.size());
  message += bytes;
}

// A CompileOptionsProto. executable_build_options (3) has num_replicas (4) and num_partitions (5);
// env_option_overrides (7) is a map from names to values, of which bool_field (2) is one. Without
// xla_allow_excess_precision = false XLA leaves out roundings to bf16 between ops, and what is
// computed would depend on what it fuses.
std::string compile_options(int64_t num_replicas) {
  std::string build = "\x20";
  append_varint(build, static_cast<uint64_t>(num_replicas));
  build += "\x28\x01";
  std::string override;
  append_field(override, 1, "xla_allow_excess_precision");
  append_field(override, 2, std::string("\x10\x00", 2));
  std::string options;
  append_field(options, 3, build);
  append_field(options, 7, override);
  return options;
}

const PJRT_Api* open_plugin(const std::string& plugin) {
  std::error_code unreadable;
  if (!std::filesystem::exists(plugin, unreadable)) {
    fail(ErrorCode::kUsage,
         "device.pjrt_plugin is '{}', which is not there: expected the path of a PJRT plugin, such "
         "as pjrt_c_api_cpu_plugin.so of the package lammps-jax-pjrt-cpu",
         plugin);
  }
  void* library = ::dlopen(plugin.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    fail(ErrorCode::kUsage, "device.pjrt_plugin: {}", ::dlerror());
  }
  using GetPjrtApi = const PJRT_Api* (*)();
  const auto get_api = reinterpret_cast<GetPjrtApi>(::dlsym(library, "GetPjrtApi"));
  const PJRT_Api* api = get_api == nullptr ? nullptr : get_api();
  if (api == nullptr) {
    fail(ErrorCode::kUsage,
         "device.pjrt_plugin {} has no function GetPjrtApi: it is not a PJRT plugin", plugin);
  }
  const PJRT_Api_Version& version = api->pjrt_api_version;
  if (version.major_version != PJRT_API_MAJOR) {
    fail(ErrorCode::kUsage,
         "device.pjrt_plugin {} speaks version {}.{} of the PJRT interface, this program {}.{}: "
         "expected the same major version",
         plugin, version.major_version, version.minor_version, PJRT_API_MAJOR, PJRT_API_MINOR);
  }
  return api;
}

}  // namespace

PjrtClient::PjrtClient(const PjrtOptions& options) : library_(std::make_unique<Library>()) {
  Library& lib = *library_;
  lib.plugin = options.plugin;
  lib.api = open_plugin(options.plugin);
  SKEIN_PJRT_ARGS(PJRT_Plugin_Initialize, initialize);
  lib.check(lib.api->PJRT_Plugin_Initialize(&initialize), "start");

  SKEIN_PJRT_ARGS(PJRT_Client_Create, create);
  PJRT_NamedValue count{};
  count.struct_size = PJRT_NamedValue_STRUCT_SIZE;
  count.name = "cpu_device_count";
  count.name_size = std::string_view(count.name).size();
  count.type = PJRT_NamedValue_kInt64;
  count.int64_value = options.num_devices;
  count.value_size = 1;
  if (options.num_devices > 0) {
    create.create_options = &count;
    create.num_options = 1;
  }
  lib.check(lib.api->PJRT_Client_Create(&create), "open its devices");
  lib.client = create.client;

  SKEIN_PJRT_ARGS(PJRT_Client_AddressableDevices, addressable);
  addressable.client = lib.client;
  lib.check(lib.api->PJRT_Client_AddressableDevices(&addressable), "list its devices");
  lib.devices.assign(addressable.addressable_devices,
                     addressable.addressable_devices + addressable.num_addressable_devices);
  if (std::ssize(lib.devices) < std::max<int64_t>(1, options.num_devices)) {
    fail(ErrorCode::kUnsupported, "the PJRT plugin {} has {} devices, expected {}", lib.plugin,
         lib.devices.size(), std::max<int64_t>(1, options.num_devices));
  }
  SKEIN_PJRT_ARGS(PJRT_Client_PlatformName, name);
  name.client = lib.client;
  lib.check(lib.api->PJRT_Client_PlatformName(&name), "tell its platform");
  SKEIN_PJRT_ARGS(PJRT_Client_PlatformVersion, version);
  version.client = lib.client;
  lib.check(lib.api->PJRT_Client_PlatformVersion(&version), "tell its version");
  const std::string words(version.platform_version, version.platform_version_size);
  lib.platform = fmt::format("{} {}", std::string_view(name.platform_name, name.platform_name_size),
                             words.substr(0, words.find('\n')));
}

PjrtClient::~PjrtClient() {
  if (library_->client == nullptr) return;
  SKEIN_PJRT_ARGS(PJRT_Client_Destroy, destroy);
  destroy.client = library_->client;
  library_->api->PJRT_Client_Destroy(&destroy);
}

int64_t PjrtClient::num_devices() const { return std::ssize(library_->devices); }
std::string PjrtClient::platform() const { return library_->platform; }

std::optional<DeviceMemory> PjrtClient::device_memory(int64_t device) const {
  SKEIN_PJRT_ARGS(PJRT_Device_MemoryStats, args);
  args.device = library_->devices.at(static_cast<size_t>(device));
  PJRT_Error* error = library_->api->PJRT_Device_MemoryStats(&args);
  if (error != nullptr) {
    SKEIN_PJRT_ARGS(PJRT_Error_Destroy, destroy);
    destroy.error = error;
    library_->api->PJRT_Error_Destroy(&destroy);
    return std::nullopt;
  }
  if (!args.bytes_limit_is_set) return std::nullopt;
  return DeviceMemory{args.bytes_limit, args.bytes_limit - args.bytes_in_use};
}

std::unique_ptr<PjrtExecutable> PjrtClient::compile(const std::string& text,
                                                    int64_t num_replicas) const {
  PJRT_Program program{};
  program.struct_size = PJRT_Program_STRUCT_SIZE;
  program.code = const_cast<char*>(text.data());  // an interface for C; it is only read
  program.code_size = text.size();
  program.format = "mlir";
  program.format_size = 4;
  const std::string build_options = compile_options(num_replicas);
  SKEIN_PJRT_ARGS(PJRT_Client_Compile, args);
  args.client = library_->client;
  args.program = &program;
  args.compile_options = build_options.data();
  args.compile_options_size = build_options.size();
  library_->check(library_->api->PJRT_Client_Compile(&args),
                  fmt::format("compile a program of {} bytes of StableHLO", text.size()));
  return std::make_unique<PjrtExecutable>(this, args.executable);
}

std::unique_ptr<PjrtExecutable> PjrtClient::load(const std::string& serialized) const {
  SKEIN_PJRT_ARGS(PJRT_Executable_DeserializeAndLoad, args);
  args.client = library_->client;
  args.serialized_executable = serialized.data();
  args.serialized_executable_size = serialized.size();
  library_->check(library_->api->PJRT_Executable_DeserializeAndLoad(&args),
                  "load a compiled program");
  return std::make_unique<PjrtExecutable>(this, args.loaded_executable);
}

PjrtBuffer PjrtClient::put(const void* data, const stablehlo::Type& type, int64_t device) const {
  SKEIN_PJRT_ARGS(PJRT_Client_BufferFromHostBuffer, args);
  args.client = library_->client;
  args.data = data;
  args.type = buffer_type(type.element);
  args.dims = type.dims.data();
  args.num_dims = type.dims.size();
  args.host_buffer_semantics = PJRT_HostBufferSemantics_kImmutableOnlyDuringCall;
  args.device = library_->devices.at(static_cast<size_t>(device));
  library_->check(library_->api->PJRT_Client_BufferFromHostBuffer(&args),
                  fmt::format("take {}", type.to_string()));
  PjrtBuffer buffer(this, args.buffer);
  library_->await(args.done_with_host_buffer, "copy from the host");
  return buffer;
}

void PjrtClient::get(const PjrtBuffer& from, void* to, int64_t bytes) const {
  SKEIN_PJRT_ARGS(PJRT_Buffer_ToHostBuffer, args);
  args.src = from.get();
  args.dst = to;
  args.dst_size = static_cast<size_t>(bytes);
  library_->check(library_->api->PJRT_Buffer_ToHostBuffer(&args), "copy to the host");
  library_->await(args.event, "compute what is copied to the host");
}

void PjrtClient::wait(const PjrtBuffer& buffer) const {
  SKEIN_PJRT_ARGS(PJRT_Buffer_ReadyEvent, args);
  args.buffer = buffer.get();
  library_->check(library_->api->PJRT_Buffer_ReadyEvent(&args), "wait for a result");
  library_->await(args.event, "run a program");
}

std::vector<std::vector<PjrtBuffer>> PjrtClient::execute(
    const PjrtExecutable& executable, const std::vector<std::vector<PJRT_Buffer*>>& arguments,
    size_t num_results) const {
  std::vector<std::vector<PJRT_Buffer*>> results(arguments.size(),
                                                 std::vector<PJRT_Buffer*>(num_results));
  std::vector<PJRT_Buffer* const*> argument_lists;
  std::vector<PJRT_Buffer**> result_lists;
  for (size_t i = 0; i < arguments.size(); ++i) {
    argument_lists.push_back(arguments[i].data());
    result_lists.push_back(results[i].data());
  }
  PJRT_ExecuteOptions options{};
  options.struct_size = PJRT_ExecuteOptions_STRUCT_SIZE;
  SKEIN_PJRT_ARGS(PJRT_LoadedExecutable_Execute, args);
  args.executable = executable.get();
  args.options = &options;
  args.argument_lists = argument_lists.data();
  args.num_devices = arguments.size();
  args.num_args = arguments.front().size();
  args.output_lists = result_lists.data();
  library_->check(library_->api->PJRT_LoadedExecutable_Execute(&args), "start a program");
  std::vector<std::vector<PjrtBuffer>> owned(arguments.size());
  for (size_t i = 0; i < results.size(); ++i) {
    for (PJRT_Buffer* result : results[i]) owned[i].emplace_back(this, result);
  }
  return owned;
}

PjrtBuffer::~PjrtBuffer() {
  if (buffer_ == nullptr) return;
  SKEIN_PJRT_ARGS(PJRT_Buffer_Destroy, destroy);
  destroy.buffer = buffer_;
  client_->library().api->PJRT_Buffer_Destroy(&destroy);
}

PjrtExecutable::~PjrtExecutable() {
  SKEIN_PJRT_ARGS(PJRT_LoadedExecutable_Destroy, destroy);
  destroy.executable = executable_;
  client_->library().api->PJRT_LoadedExecutable_Destroy(&destroy);
}

namespace {

// The executable without its place on devices, for what the compiler knows of it.
class Compiled {
 public:
  Compiled(const PjrtClient::Library& library, PJRT_LoadedExecutable* loaded) : library_(library) {
    SKEIN_PJRT_ARGS(PJRT_LoadedExecutable_GetExecutable, args);
    args.loaded_executable = loaded;
    library.check(library.api->PJRT_LoadedExecutable_GetExecutable(&args), "describe a program");
    executable_ = args.executable;
  }
  ~Compiled() {
    SKEIN_PJRT_ARGS(PJRT_Executable_Destroy, destroy);
    destroy.executable = executable_;
    library_.api->PJRT_Executable_Destroy(&destroy);
  }
  Compiled(const Compiled&) = delete;
  Compiled& operator=(const Compiled&) = delete;
  PJRT_Executable* get() const { return executable_; }

 private:
  const PjrtClient::Library& library_;
  PJRT_Executable* executable_ = nullptr;
};

}  // namespace

PjrtMemory PjrtExecutable::memory() const {
  const PjrtClient::Library& library = client_->library();
  const Compiled compiled(library, executable_);
  SKEIN_PJRT_ARGS(PJRT_Executable_GetCompiledMemoryStats, args);
  args.executable = compiled.get();
  library.check(library.api->PJRT_Executable_GetCompiledMemoryStats(&args),
                "tell the memory of a program");
  return {args.argument_size_in_bytes, args.output_size_in_bytes, args.alias_size_in_bytes,
          args.temp_size_in_bytes};
}

std::string PjrtExecutable::serialized() const {
  const PjrtClient::Library& library = client_->library();
  const Compiled compiled(library, executable_);
  SKEIN_PJRT_ARGS(PJRT_Executable_Serialize, args);
  args.executable = compiled.get();
  library.check(library.api->PJRT_Executable_Serialize(&args), "write a compiled program");
  std::string bytes(args.serialized_bytes, args.serialized_bytes_size);
  args.serialized_executable_deleter(args.serialized_executable);
  return bytes;
}

}  // namespace skein
