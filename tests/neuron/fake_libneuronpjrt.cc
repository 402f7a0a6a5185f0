// Stands for Neuron's PJRT plugin in tests: checks what Neuron's expects of the process and of the
// programs, and lets a plugin of XLA for CPUs do the rest. What it saw and what was wrong are lines
// of the file FAKE_NEURON_REPORT.
//
//   FAKE_NEURON_RUNS_ON   the path of the plugin of XLA
#include <dlfcn.h>
#include <pjrt_c_api.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <regex>
#include <string>
#include <thread>

namespace {

const PJRT_Api* real = nullptr;
PJRT_Api api;

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

void report(const std::string& line) {
  std::ofstream(variable("FAKE_NEURON_REPORT"), std::ios::app) << line << "\n";
}

void expect(bool holds, const std::string& what) {
  if (!holds) report("WRONG: " + what);
}

void expect_variable(const char* name, const std::string& pattern) {
  const std::string value = variable(name);
  expect(std::regex_match(value, std::regex(pattern)),
         std::string(name) + " is '" + value + "', expected " + pattern);
}

template <typename Function>
Function python(const char* name) {
  return reinterpret_cast<Function>(::dlsym(RTLD_DEFAULT, name));
}

// As Neuron's plugin calls its compiler: from a thread of its own, which needs Python's lock.
void call_compiler(size_t size) {
  std::thread([size] {
    const auto ensure = python<int (*)()>("PyGILState_Ensure");
    const auto run = python<int (*)(const char*)>("PyRun_SimpleString");
    const auto release = python<void (*)(int)>("PyGILState_Release");
    const int state = ensure();
    const std::string call =
        "import libneuronxla; libneuronxla.neuronx_cc(" + std::to_string(size) + ")";
    expect(run(call.c_str()) == 0, "Python does not run libneuronxla.neuronx_cc");
    release(state);
  }).join();
}

void check_text(std::string text) {
  // Lists of replica groups are attributes, and always of i64.
  text = std::regex_replace(text, std::regex("dense<\\[\\[[^:]*: tensor<[0-9x]*i64>"), "");
  for (const char* element : {"f64>", "i64>", "ui64>", "f8E4M3FN>"}) {
    expect(text.find(element) == std::string::npos,
           std::string("a program has numbers of ") + element);
  }
}

int num_visible_cores() {
  const std::string cores = variable("NEURON_RT_VISIBLE_CORES");
  const size_t dash = cores.find('-');
  if (dash == std::string::npos) return 1;
  return std::stoi(cores.substr(dash + 1)) - std::stoi(cores) + 1;
}

PJRT_Error* create_client(PJRT_Client_Create_Args* args) {
  expect(args->num_options == 0, "a client is created with options, which Neuron does not know");
  PJRT_NamedValue count{};
  count.struct_size = PJRT_NamedValue_STRUCT_SIZE;
  count.name = "cpu_device_count";
  count.name_size = std::strlen(count.name);
  count.type = PJRT_NamedValue_kInt64;
  count.int64_value = num_visible_cores();
  count.value_size = 1;
  PJRT_Client_Create_Args with_cores = *args;
  with_cores.create_options = &count;
  with_cores.num_options = 1;
  PJRT_Error* error = real->PJRT_Client_Create(&with_cores);
  args->client = with_cores.client;
  report("created a client of " + std::to_string(count.int64_value));
  return error;
}

PJRT_Error* platform_name(PJRT_Client_PlatformName_Args* args) {
  args->platform_name = "neuron";
  args->platform_name_size = 6;
  return nullptr;
}

PJRT_Error* compile(PJRT_Client_Compile_Args* args) {
  const std::string text(args->program->code, args->program->code_size);
  check_text(text);
  call_compiler(text.size());
  return real->PJRT_Client_Compile(args);
}

// Functions that the plugin has, and that answer with an error.
PJRT_Error* memory_stats(PJRT_Executable_GetCompiledMemoryStats_Args* args) {
  PJRT_Executable_GetCompiledMemoryStats_Args wrong = *args;
  wrong.struct_size = 1;
  return real->PJRT_Executable_GetCompiledMemoryStats(&wrong);
}

PJRT_Error* serialize(PJRT_Executable_Serialize_Args* args) {
  PJRT_Executable_Serialize_Args wrong = *args;
  wrong.struct_size = 1;
  return real->PJRT_Executable_Serialize(&wrong);
}

}  // namespace

extern "C" const PJRT_Api* GetPjrtApi() {
  expect_variable("NEURON_INTERNAL_PJRT_C_API_VERSION",
                  std::to_string(PJRT_API_MAJOR) + "\\." + std::to_string(PJRT_API_MINOR));
  expect_variable("NEURON_RT_STOCHASTIC_ROUNDING_EN", "0");
  expect_variable("NEURON_RT_ROOT_COMM_ID", "127\\.0\\.0\\.1:[0-9]+");
  expect_variable("NEURON_RT_VISIBLE_CORES", "[0-9]+(-[0-9]+)?");
  expect_variable("NEURON_COMPILE_CACHE_URL", "/.*");
  report("flags " + variable("NEURON_CC_FLAGS"));
  report("cores " + variable("NEURON_RT_VISIBLE_CORES"));
  const auto is_running = python<int (*)()>("Py_IsInitialized");
  expect(is_running != nullptr && is_running() == 1, "Python does not run in this process");
  void* library = ::dlopen(variable("FAKE_NEURON_RUNS_ON").c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    report(std::string("WRONG: ") + ::dlerror());
    return nullptr;
  }
  real = reinterpret_cast<const PJRT_Api* (*)()>(::dlsym(library, "GetPjrtApi"))();
  std::memcpy(&api, real, std::min<size_t>(sizeof api, real->struct_size));
  api.struct_size = std::min<size_t>(sizeof api, real->struct_size);
  api.PJRT_Client_Create = create_client;
  api.PJRT_Client_PlatformName = platform_name;
  api.PJRT_Client_Compile = compile;
  api.PJRT_Executable_GetCompiledMemoryStats = memory_stats;
  api.PJRT_Executable_Serialize = serialize;
  report("opened");
  return &api;
}
