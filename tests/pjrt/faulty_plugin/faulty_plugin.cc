// A PJRT plugin for tests: it hands every call on to another plugin, and lets one of them fail.
//
//   SKEIN_FAULTY_PJRT_PLUGIN  the path of the other plugin
//   SKEIN_FAULTY_PJRT         "FAULT COUNT FILE [ARGUMENTS]"; not set: none fails
//
// The COUNTth call of a kind has the fault, over all processes: FILE counts them, a byte each. Of
// execute and result, programs with fewer ARGUMENTS do not count.
//
//   execute    starting a program fails
//   result     a program starts, and its results fail, as does all that is computed of them
//   compile    the compiler's memory is exhausted
//   hang       the compiler does not end
//   load       a program that was compiled earlier is refused
//   serialize  a compiled program cannot be written
#include <dlfcn.h>
#include <fcntl.h>
#include <pjrt_c_api.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <set>
#include <sstream>
#include <string>
#include <vector>

namespace {

constexpr const char* kFailure = "the core is on fire";

struct FaultyError {
  std::string message;
  PJRT_Error_Code code;
};

const PJRT_Api* g_real = nullptr;
std::mutex g_mutex;
std::set<const void*> g_errors;  // our own, which the other plugin does not know
std::set<const void*> g_failed;  // buffers and events

PJRT_Error* make_error(const std::string& message, PJRT_Error_Code code) {
  auto* error = new FaultyError{message, code};
  const std::lock_guard lock(g_mutex);
  g_errors.insert(error);
  return reinterpret_cast<PJRT_Error*>(error);
}

bool is_own(const PJRT_Error* error) {
  const std::lock_guard lock(g_mutex);
  return g_errors.contains(error);
}

bool has_failed(const void* object) {
  const std::lock_guard lock(g_mutex);
  return g_failed.contains(object);
}

void set_failed(const void* object, bool failed) {
  const std::lock_guard lock(g_mutex);
  failed ? (void)g_failed.insert(object) : (void)g_failed.erase(object);
}

// Counts a call, and returns whether it is the one that fails.
bool fails(const std::string& fault, size_t num_arguments = SIZE_MAX) {
  const char* setting = std::getenv("SKEIN_FAULTY_PJRT");
  if (setting == nullptr) return false;
  std::istringstream words(setting);
  std::string wanted, file;
  int64_t count = 0;
  size_t fewest_arguments = 0;
  words >> wanted >> count >> file >> fewest_arguments;
  if (wanted != fault || num_arguments < fewest_arguments) return false;
  const int fd = ::open(file.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0644);
  if (fd < 0 || ::write(fd, "x", 1) != 1) std::abort();
  struct stat status {};
  ::fstat(fd, &status);
  ::close(fd);
  return status.st_size == count;
}

void destroy_error(PJRT_Error_Destroy_Args* args) {
  if (!is_own(args->error)) return g_real->PJRT_Error_Destroy(args);
  const std::lock_guard lock(g_mutex);
  g_errors.erase(args->error);
  delete reinterpret_cast<FaultyError*>(args->error);
}

void tell_error(PJRT_Error_Message_Args* args) {
  if (!is_own(args->error)) return g_real->PJRT_Error_Message(args);
  const auto* error = reinterpret_cast<const FaultyError*>(args->error);
  args->message = error->message.data();
  args->message_size = error->message.size();
}

PJRT_Error* code_of_error(PJRT_Error_GetCode_Args* args) {
  if (!is_own(args->error)) return g_real->PJRT_Error_GetCode(args);
  args->code = reinterpret_cast<const FaultyError*>(args->error)->code;
  return nullptr;
}

PJRT_Error* compile(PJRT_Client_Compile_Args* args) {
  if (fails("compile")) {
    return make_error("no memory is left for the compiler", PJRT_Error_Code_RESOURCE_EXHAUSTED);
  }
  while (fails("hang")) ::sleep(3600);
  return g_real->PJRT_Client_Compile(args);
}

PJRT_Error* load(PJRT_Executable_DeserializeAndLoad_Args* args) {
  if (fails("load")) return make_error("this program is of another day", PJRT_Error_Code_INTERNAL);
  return g_real->PJRT_Executable_DeserializeAndLoad(args);
}

PJRT_Error* serialize(PJRT_Executable_Serialize_Args* args) {
  if (fails("serialize")) return make_error("not here", PJRT_Error_Code_UNIMPLEMENTED);
  return g_real->PJRT_Executable_Serialize(args);
}

PJRT_Error* execute(PJRT_LoadedExecutable_Execute_Args* args) {
  if (fails("execute", args->num_args)) return make_error(kFailure, PJRT_Error_Code_INTERNAL);
  bool failed = fails("result", args->num_args);
  for (size_t device = 0; device < args->num_devices; ++device) {
    for (size_t i = 0; i < args->num_args; ++i) {
      failed = failed || has_failed(args->argument_lists[device][i]);
    }
  }
  PJRT_LoadedExecutable_GetExecutable_Args of_loaded{};
  of_loaded.struct_size = PJRT_LoadedExecutable_GetExecutable_Args_STRUCT_SIZE;
  of_loaded.loaded_executable = args->executable;
  if (PJRT_Error* error = g_real->PJRT_LoadedExecutable_GetExecutable(&of_loaded)) return error;
  PJRT_Executable_NumOutputs_Args outputs{};
  outputs.struct_size = PJRT_Executable_NumOutputs_Args_STRUCT_SIZE;
  outputs.executable = of_loaded.executable;
  if (PJRT_Error* error = g_real->PJRT_Executable_NumOutputs(&outputs)) return error;
  PJRT_Executable_Destroy_Args destroy{};
  destroy.struct_size = PJRT_Executable_Destroy_Args_STRUCT_SIZE;
  destroy.executable = of_loaded.executable;
  g_real->PJRT_Executable_Destroy(&destroy);
  if (PJRT_Error* error = g_real->PJRT_LoadedExecutable_Execute(args)) return error;
  for (size_t device = 0; device < args->num_devices; ++device) {
    for (size_t i = 0; i < outputs.num_outputs; ++i) {
      set_failed(args->output_lists[device][i], failed);
    }
  }
  return nullptr;
}

PJRT_Error* destroy_buffer(PJRT_Buffer_Destroy_Args* args) {
  set_failed(args->buffer, false);
  return g_real->PJRT_Buffer_Destroy(args);
}

PJRT_Error* when_ready(PJRT_Buffer_ReadyEvent_Args* args) {
  PJRT_Error* error = g_real->PJRT_Buffer_ReadyEvent(args);
  if (error == nullptr) set_failed(args->event, has_failed(args->buffer));
  return error;
}

PJRT_Error* to_host(PJRT_Buffer_ToHostBuffer_Args* args) {
  PJRT_Error* error = g_real->PJRT_Buffer_ToHostBuffer(args);
  if (error == nullptr && args->dst != nullptr) set_failed(args->event, has_failed(args->src));
  return error;
}

PJRT_Error* await(PJRT_Event_Await_Args* args) {
  PJRT_Error* error = g_real->PJRT_Event_Await(args);
  if (error != nullptr || !has_failed(args->event)) return error;
  return make_error(kFailure, PJRT_Error_Code_INTERNAL);
}

PJRT_Error* destroy_event(PJRT_Event_Destroy_Args* args) {
  set_failed(args->event, false);
  return g_real->PJRT_Event_Destroy(args);
}

const PJRT_Api* make_api() {
  const char* path = std::getenv("SKEIN_FAULTY_PJRT_PLUGIN");
  void* library = path == nullptr ? nullptr : ::dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return nullptr;
  const auto get = reinterpret_cast<const PJRT_Api* (*)()>(::dlsym(library, "GetPjrtApi"));
  g_real = get == nullptr ? nullptr : get();
  if (g_real == nullptr) return nullptr;
  // The other plugin's table may be longer than the one of this header.
  static std::vector<char> table(g_real->struct_size);
  std::memcpy(table.data(), g_real, table.size());
  auto* api = reinterpret_cast<PJRT_Api*>(table.data());
  api->PJRT_Error_Destroy = destroy_error;
  api->PJRT_Error_Message = tell_error;
  api->PJRT_Error_GetCode = code_of_error;
  api->PJRT_Client_Compile = compile;
  api->PJRT_Executable_DeserializeAndLoad = load;
  api->PJRT_Executable_Serialize = serialize;
  api->PJRT_LoadedExecutable_Execute = execute;
  api->PJRT_Buffer_Destroy = destroy_buffer;
  api->PJRT_Buffer_ReadyEvent = when_ready;
  api->PJRT_Buffer_ToHostBuffer = to_host;
  api->PJRT_Event_Await = await;
  api->PJRT_Event_Destroy = destroy_event;
  return api;
}

}  // namespace

extern "C" const PJRT_Api* GetPjrtApi() {
  static const PJRT_Api* const api = make_api();
  return api;
}
