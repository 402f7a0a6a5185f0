#include "skein/runtime/pjrt/pjrt_library.h"

#include <dlfcn.h>

#include <filesystem>

#include "skein/base/error.h"

namespace skein {
namespace {

const PJRT_Api* open_plugin(const std::string& plugin, std::string_view setting) {
  std::error_code unreadable;
  if (!std::filesystem::exists(plugin, unreadable)) {
    fail(ErrorCode::kUsage,
         "{} is '{}', which is not there: expected the path of a PJRT plugin, such "
         "as pjrt_c_api_cpu_plugin.so of the package lammps-jax-pjrt-cpu",
         setting, plugin);
  }
  void* library = ::dlopen(plugin.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    fail(ErrorCode::kUsage, "{}: {}", setting, ::dlerror());
  }
  using GetPjrtApi = const PJRT_Api* (*)();
  const auto get_api = reinterpret_cast<GetPjrtApi>(::dlsym(library, "GetPjrtApi"));
  const PJRT_Api* api = get_api == nullptr ? nullptr : get_api();
  if (api == nullptr) {
    fail(ErrorCode::kUsage, "{} {} has no function GetPjrtApi: it is not a PJRT plugin", setting,
         plugin);
  }
  const PJRT_Api_Version& version = api->pjrt_api_version;
  if (version.major_version != PJRT_API_MAJOR) {
    fail(ErrorCode::kUsage,
         "{} {} speaks version {}.{} of the PJRT interface, this program {}.{}: "
         "expected the same major version",
         setting, plugin, version.major_version, version.minor_version, PJRT_API_MAJOR,
         PJRT_API_MINOR);
  }
  return api;
}

}  // namespace

PjrtLibrary::PjrtLibrary(std::string path, std::string_view setting)
    : plugin(std::move(path)), api(open_plugin(plugin, setting)) {
  SKEIN_PJRT_ARGS(PJRT_Plugin_Initialize, initialize);
  check(api->PJRT_Plugin_Initialize(&initialize), "start");
}

std::string PjrtLibrary::words_of(PJRT_Error* error) const {
  if (error == nullptr) return {};
  SKEIN_PJRT_ARGS(PJRT_Error_Message, message);
  message.error = error;
  api->PJRT_Error_Message(&message);
  std::string text(message.message, message.message_size);
  SKEIN_PJRT_ARGS(PJRT_Error_Destroy, destroy);
  destroy.error = error;
  api->PJRT_Error_Destroy(&destroy);
  return text.empty() ? "an error without a message" : text;
}

void PjrtLibrary::check(PJRT_Error* error, std::string_view doing) const {
  if (error == nullptr) return;
  fail(ErrorCode::kInternal, "the PJRT plugin {} could not {}: {}", plugin, doing, words_of(error));
}

CompiledMemory PjrtLibrary::memory_of(PJRT_Executable* executable) const {
  SKEIN_PJRT_ARGS(PJRT_Executable_GetCompiledMemoryStats, args);
  args.executable = executable;
  check(api->PJRT_Executable_GetCompiledMemoryStats(&args), "tell the memory of a program");
  return {args.argument_size_in_bytes, args.output_size_in_bytes, args.alias_size_in_bytes,
          args.temp_size_in_bytes, args.generated_code_size_in_bytes};
}

void PjrtLibrary::destroy(PJRT_Executable* executable) const {
  SKEIN_PJRT_ARGS(PJRT_Executable_Destroy, args);
  args.executable = executable;
  api->PJRT_Executable_Destroy(&args);
}

std::string platform_text(std::string_view name, std::string_view version) {
  return fmt::format("{} {}", name, version.substr(0, version.find('\n')));
}

}  // namespace skein
