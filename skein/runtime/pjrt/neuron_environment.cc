#include "skein/runtime/pjrt/neuron_environment.h"

#include <arpa/inet.h>
#include <dlfcn.h>
#include <netinet/in.h>
#include <pjrt_c_api.h>
#include <sys/socket.h>

#include <cstdlib>
#include <mutex>
#include <regex>

#include "skein/base/error.h"
#include "skein/base/files/file.h"
#include "skein/base/text/log.h"

namespace skein {
namespace {

// A port of this machine that nobody listens on.
int free_port() {
  const FileDescriptor socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  auto* any = reinterpret_cast<sockaddr*>(&address);
  if (::bind(socket.get(), any, size) != 0 || ::getsockname(socket.get(), any, &size) != 0) {
    fail(ErrorCode::kIo, "no free port for NEURON_RT_ROOT_COMM_ID: {}", errno_text(errno));
  }
  return ntohs(address.sin_port);
}

// "trn1" of "trn1.32xlarge"; "": no machine with Trainium.
std::string target_of(const std::string& product) {
  const std::string family = product.substr(0, product.find('.'));
  for (const char* target : {"trn1", "trn1n", "trn2"}) {
    if (family == target) return target;
  }
  return "";
}

// Appends NAME=VALUE to one of the lists; sets it in the first case.
void set_unless_set(const std::string& name, const std::string& value, std::string& set,
                    std::string& kept) {
  const char* given = std::getenv(name.c_str());
  std::string& list = given == nullptr ? set : kept;
  list += fmt::format("{}{}={}", list.empty() ? "" : ", ", name, given == nullptr ? value : given);
  ::setenv(name.c_str(), value.c_str(), /*overwrite=*/0);
}

void warn_of_several_processes() {
  const char* given = std::getenv("NEURON_PJRT_PROCESSES_NUM_DEVICES");
  if (given == nullptr || std::string_view(given).find(',') == std::string_view::npos) return;
  log::warn(
      "NEURON_PJRT_PROCESSES_NUM_DEVICES is {}, of several processes: each process of Skein "
      "compiles for its own devices; unset it if the plugin waits for the others",
      given);
}

bool names_python(const std::string& plugin) {
  return MappedFile(plugin).text().find("PyGILState_Ensure") != std::string_view::npos;
}

// The functions of the stable interface of Python that are needed here.
class Python {
 public:
  explicit Python(const std::string& plugin) {
    const fs::path packages = fs::absolute(plugin).parent_path().parent_path();
    open(plugin, packages);
    add_to_path(packages);
    const auto initialize = function<void (*)(int)>("Py_InitializeEx");
    const auto run = function<int (*)(const char*)>("PyRun_SimpleString");
    const auto is_running = function<int (*)()>("Py_IsInitialized");
    if (is_running() == 0) initialize(/*installs signal handlers*/ 0);
    if (run("import libneuronxla") != 0) {
      fail(ErrorCode::kUsage,
           "{} does not find the module libneuronxla, which {} calls: expected the package beside "
           "the plugin, in {}",
           library_name_, plugin, packages.string());
    }
    // The plugin takes the lock where it calls Python, in threads of its own too.
    function<void* (*)()>("PyEval_SaveThread")();
  }
  const std::string& library_name() const { return library_name_; }

 private:
  void open(const std::string& plugin, const fs::path& packages) {
    const char* given = std::getenv("SKEIN_PYTHON_LIBRARY");
    std::smatch version;
    const std::string path = packages.string();
    if (given != nullptr && *given != '\0') {
      library_name_ = given;
    } else if (std::regex_search(path, version, std::regex("python(3\\.[0-9]+)"))) {
      library_name_ = "libpython" + version[1].str() + ".so.1.0";
    } else {
      fail(ErrorCode::kUsage,
           "{} calls Python, and its folder does not tell which: set SKEIN_PYTHON_LIBRARY to the "
           "path of libpython3.N.so.1.0",
           plugin);
    }
    library_ = ::dlopen(library_name_.c_str(), RTLD_NOW | RTLD_GLOBAL);
    if (library_ == nullptr) {
      fail(ErrorCode::kUsage,
           "{} calls Python, which does not open: {}: install it (apt-get install libpython3.N), "
           "or set SKEIN_PYTHON_LIBRARY to its path",
           plugin, ::dlerror());
    }
  }

  static void add_to_path(const fs::path& packages) {
    const char* given = std::getenv("PYTHONPATH");
    const std::string more = given == nullptr || *given == '\0' ? "" : ":" + std::string(given);
    ::setenv("PYTHONPATH", (packages.string() + more).c_str(), /*overwrite=*/1);
  }

  template <typename Function>
  Function function(const char* name) const {
    void* symbol = ::dlsym(library_, name);
    if (symbol == nullptr) {
      fail(ErrorCode::kUsage, "{} has no function {}: expected a library of Python 3",
           library_name_, name);
    }
    return reinterpret_cast<Function>(symbol);
  }

  std::string library_name_;
  void* library_ = nullptr;
};

}  // namespace

std::map<std::string, std::string> neuron_variables(const std::string& product,
                                                    const NeuronCores& cores) {
  const std::string target = target_of(product);
  const int64_t last = cores.first + cores.count - 1;
  return {
      {"NEURON_INTERNAL_PJRT_C_API_VERSION", fmt::format("{}.{}", PJRT_API_MAJOR, PJRT_API_MINOR)},
      // The noise of stochastic rounding is in the programs.
      {"NEURON_RT_STOCHASTIC_ROUNDING_EN", "0"},
      {"NEURON_RT_ROOT_COMM_ID", fmt::format("127.0.0.1:{}", free_port())},
      {"NEURON_CC_FLAGS",
       (target.empty() ? "" : "--target=" + target + " ") +
           "--model-type=transformer --distribution-strategy=llm-training --auto-cast=none" +
           (target == "trn2" ? "" : " --enable-saturate-infinity")},
      // Of this machine alone: shared file systems have damaged such caches.
      {"NEURON_COMPILE_CACHE_URL", "/var/tmp/neuron-compile-cache"},
      {"NEURON_RT_VISIBLE_CORES",
       cores.count == 1 ? std::to_string(last) : fmt::format("{}-{}", cores.first, last)},
  };
}

void prepare_for_neuron(const std::string& plugin, const NeuronCores& cores) {
  static std::once_flag once;
  std::call_once(once, [&] {
    std::string product = read_file_if_any("/sys/class/dmi/id/product_name");
    while (!product.empty() && product.back() == '\n') product.pop_back();
    std::string set, kept;
    for (const auto& [name, value] : neuron_variables(product, cores)) {
      set_unless_set(name, value, set, kept);
    }
    const std::string python = names_python(plugin)
                                   ? Python(plugin).library_name() + " runs in this process"
                                   : "no Python";
    log::info("Neuron's plugin: set {}; kept {}; {}", set.empty() ? "nothing" : set,
              kept.empty() ? "nothing" : kept, python);
    warn_of_several_processes();
  });
}

}  // namespace skein
