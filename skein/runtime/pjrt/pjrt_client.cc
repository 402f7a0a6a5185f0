#include "skein/runtime/pjrt/pjrt_client.h"

#include "skein/base/error.h"
#include "skein/base/text/units.h"
#include "skein/base/threads/call_within.h"
#include "skein/runtime/neuron.h"
#include "skein/runtime/pjrt/compile_options.h"
#include "skein/runtime/pjrt/neuron_environment.h"
#include "skein/runtime/pjrt/pjrt_library.h"

namespace skein {
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

}  // namespace

PjrtClient::PjrtClient(const PjrtOptions& options) {
  if (is_neuron_plugin(options.plugin)) {
    prepare_for_neuron(options.plugin,
                       {options.first_device, std::max<int64_t>(1, options.num_devices)});
  }
  library_ = std::make_unique<Library>(options.plugin);
  Library& lib = *library_;
  open(0);
  SKEIN_PJRT_ARGS(PJRT_Client_PlatformName, name);
  name.client = lib.client;
  lib.check(lib.api->PJRT_Client_PlatformName(&name), "tell its platform");
  lib.platform_name.assign(name.platform_name, name.platform_name_size);
  if (std::ssize(lib.devices) < options.num_devices && lib.platform_name == "cpu") {
    close();
    open(options.num_devices);
  }
  if (std::ssize(lib.devices) < std::max<int64_t>(1, options.num_devices)) {
    fail(ErrorCode::kUnsupported, "the PJRT plugin {} has {}, expected {}", lib.plugin,
         counted(std::ssize(lib.devices), "device"), std::max<int64_t>(1, options.num_devices));
  }
  SKEIN_PJRT_ARGS(PJRT_Client_PlatformVersion, version);
  version.client = lib.client;
  lib.check(lib.api->PJRT_Client_PlatformVersion(&version), "tell its version");
  lib.platform_version.assign(version.platform_version, version.platform_version_size);
}

// `num_devices`: how many XLA is to make of a CPU; 0: not said.
void PjrtClient::open(int64_t num_devices) {
  Library& lib = *library_;
  SKEIN_PJRT_ARGS(PJRT_Client_Create, create);
  PJRT_NamedValue count{};
  count.struct_size = PJRT_NamedValue_STRUCT_SIZE;
  count.name = "cpu_device_count";
  count.name_size = std::string_view(count.name).size();
  count.type = PJRT_NamedValue_kInt64;
  count.int64_value = num_devices;
  count.value_size = 1;
  if (num_devices > 0) {
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
}

void PjrtClient::close() {
  SKEIN_PJRT_ARGS(PJRT_Client_Destroy, destroy);
  destroy.client = std::exchange(library_->client, nullptr);
  library_->api->PJRT_Client_Destroy(&destroy);
}

PjrtClient::~PjrtClient() {
  if (library_->client == nullptr) return;
  if (has_given_up_calls()) {  // one of them may be using it
    library_.release();        // NOLINT(bugprone-unused-return-value)
    return;
  }
  close();
}

bool PjrtClient::is_narrow() const { return is_neuron_plugin(library_->plugin); }
int64_t PjrtClient::num_devices() const { return std::ssize(library_->devices); }
const std::string& PjrtClient::platform_name() const { return library_->platform_name; }
const std::string& PjrtClient::plugin() const { return library_->plugin; }

std::string PjrtClient::platform() const {
  return platform_text(library_->platform_name, library_->platform_version);
}

std::string PjrtClient::identity() const {
  SKEIN_PJRT_ARGS(PJRT_Device_GetDescription, description);
  description.device = library_->devices.front();
  library_->check(library_->api->PJRT_Device_GetDescription(&description), "describe a device");
  SKEIN_PJRT_ARGS(PJRT_DeviceDescription_Kind, kind);
  kind.device_description = description.device_description;
  library_->check(library_->api->PJRT_DeviceDescription_Kind(&kind), "tell the kind of a device");
  const PJRT_Api_Version& version = library_->api->pjrt_api_version;
  return fmt::format("platform {}\nversion {}\ninterface {}.{}\ndevices {} of {}\n",
                     library_->platform_name, library_->platform_version, version.major_version,
                     version.minor_version, num_devices(),
                     std::string_view(kind.device_kind, kind.device_kind_size));
}

std::optional<DeviceMemory> PjrtClient::device_memory(int64_t device) const {
  SKEIN_PJRT_ARGS(PJRT_Device_MemoryStats, args);
  args.device = library_->devices.at(static_cast<size_t>(device));
  if (!library_->words_of(library_->api->PJRT_Device_MemoryStats(&args)).empty()) {
    return std::nullopt;
  }
  if (!args.bytes_limit_is_set) return std::nullopt;
  return DeviceMemory{args.bytes_limit, args.bytes_limit - args.bytes_in_use};
}

std::unique_ptr<PjrtExecutable> PjrtClient::compile(const std::string& text, int64_t num_replicas,
                                                    const std::string& level) const {
  const Library& library = *library_;  // which remains where this call is given up
  PJRT_Program program{};
  program.struct_size = PJRT_Program_STRUCT_SIZE;
  program.code = const_cast<char*>(text.data());  // an interface for C; it is only read
  program.code_size = text.size();
  program.format = "mlir";
  program.format_size = 4;
  const std::string build_options = compile_options(num_replicas, level);
  SKEIN_PJRT_ARGS(PJRT_Client_Compile, args);
  args.client = library.client;
  args.program = &program;
  args.compile_options = build_options.data();
  args.compile_options_size = build_options.size();
  library.check(library.api->PJRT_Client_Compile(&args),
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
  PjrtEvent(this, args.done_with_host_buffer).wait();
  return buffer;
}

void PjrtClient::get(const PjrtBuffer& from, void* to, int64_t bytes) const {
  SKEIN_PJRT_ARGS(PJRT_Buffer_ToHostBuffer, args);
  args.src = from.get();
  args.dst = to;
  args.dst_size = static_cast<size_t>(bytes);
  library_->check(library_->api->PJRT_Buffer_ToHostBuffer(&args), "copy to the host");
  PjrtEvent(this, args.event).wait();
}

PjrtEvent PjrtClient::when_ready(const PjrtBuffer& buffer) const {
  SKEIN_PJRT_ARGS(PJRT_Buffer_ReadyEvent, args);
  args.buffer = buffer.get();
  library_->check(library_->api->PJRT_Buffer_ReadyEvent(&args), "wait for a result");
  return {this, args.event};
}

void PjrtEvent::wait() const {
  const PjrtClient::Library& library = client_->library();
  SKEIN_PJRT_ARGS(PJRT_Event_Await, args);
  args.event = event_;
  library.check(library.api->PJRT_Event_Await(&args), "compute a result, or copy it");
}

PjrtEvent::~PjrtEvent() {
  if (event_ == nullptr) return;
  SKEIN_PJRT_ARGS(PJRT_Event_Destroy, destroy);
  destroy.event = event_;
  client_->library().api->PJRT_Event_Destroy(&destroy);
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
  ~Compiled() { library_.destroy(executable_); }
  Compiled(const Compiled&) = delete;
  Compiled& operator=(const Compiled&) = delete;
  PJRT_Executable* get() const { return executable_; }

 private:
  const PjrtClient::Library& library_;
  PJRT_Executable* executable_ = nullptr;
};

}  // namespace

CompiledMemory PjrtExecutable::memory() const {
  const PjrtClient::Library& library = client_->library();
  try {
    return library.memory_of(Compiled(library, executable_).get());
  } catch (const Error&) {
    return {};  // not every plugin tells
  }
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
