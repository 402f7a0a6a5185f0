// skein serve MODEL [--listen 127.0.0.1:8000] [--api-key-file FILE] [--served-model-name NAME]
//                   [--precision f32|bf16] [--max-length N] [--cache-gb G]
//                   [--device auto|cpu|cuda] [--tensor N] [--replicas N] [--threads N]
//                   [--plan [--json]]
#include <fmt/format.h>
#include <pthread.h>
#include <sys/resource.h>

#include <algorithm>
#include <charconv>
#include <csignal>
#include <cstdlib>
#include <memory>
#include <sstream>

#include "skein/backends/backend.h"
#include "skein/base/text/log.h"
#include "skein/base/text/units.h"
#include "skein/cli/commands/commands.h"
#include "skein/cli/inputs/device_arguments.h"
#include "skein/cli/shared/print.h"
#include "skein/serve/api_server.h"

namespace skein {
namespace {

struct ServeArguments {
  std::string model, name, listen = "127.0.0.1:8000", api_key_file;
  std::string precision = "f32";
  int64_t max_length = 0, max_texts = 64, queue = 256;
  double cache_gb = static_cast<double>(kUsualCacheBytes) * 1e-9;
  double grace_seconds = 30;
  DeviceArguments device;
  bool plan = false, json = false;
};

// "127.0.0.1:8000", "[::1]:8000", "8000"
void set_address(const std::string& listen, HttpServerOptions& http) {
  const size_t colon = listen.rfind(':');
  const std::string port = colon == std::string::npos ? listen : listen.substr(colon + 1);
  std::string address = colon == std::string::npos ? http.address : listen.substr(0, colon);
  if (address.size() > 2 && address.front() == '[' && address.back() == ']') {
    address = address.substr(1, address.size() - 2);
  }
  const auto [end, error] = std::from_chars(port.data(), port.data() + port.size(), http.port);
  const bool is_port = error == std::errc() && end == port.data() + port.size() && http.port >= 0 &&
                       http.port <= 65535;
  if (!is_port || address.empty()) {
    fail(ErrorCode::kUsage,
         "--listen {}: expected ADDRESS:PORT, as 127.0.0.1:8000 or [::1]:8000; 0: any port",
         listen);
  }
  http.address = address;
}

// One key a line; blank lines and those that begin with # are left out.
std::vector<std::string> keys_of(const std::string& file) {
  const char* variable = std::getenv("SKEIN_API_KEY");
  std::vector<std::string> keys;
  if (file.empty()) {
    if (variable != nullptr && *variable != '\0') keys.emplace_back(variable);
    return keys;
  }
  std::istringstream lines(read_file(file));
  for (std::string line; std::getline(lines, line);) {
    while (!line.empty() && (line.back() == '\r' || line.back() == ' ')) line.pop_back();
    if (!line.empty() && line.front() != '#') keys.push_back(line);
  }
  if (keys.empty()) {
    fail(ErrorCode::kUsage, "--api-key-file {}: has no key: expected one a line", file);
  }
  return keys;
}

// The last part of a path: runs/mine is "mine".
std::string name_of(const std::string& model) {
  fs::path path = fs::path(model).lexically_normal();
  if (path.filename().empty()) path = path.parent_path();
  return path.filename().string();
}

bool is_loopback(const std::string& address) {
  return address == "localhost" || address == "::1" || address.starts_with("127.");
}

// The signals that end the server come to the thread that waits for them, to no other.
class StopRequest {
 public:
  StopRequest() {
    sigemptyset(&signals_);
    sigaddset(&signals_, SIGTERM);
    sigaddset(&signals_, SIGINT);
    pthread_sigmask(SIG_BLOCK, &signals_, &before_);
  }
  int wait() const {
    int signal = 0;
    sigwait(&signals_, &signal);
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);  // a second one ends the process
    return signal;
  }

 private:
  sigset_t signals_{}, before_{};
};

// A connection is a file: what the machine allows is taken, since a shell often allows 1,024 alone.
void allow_many_files() {
  struct rlimit limit {};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  constexpr rlim_t kWanted = 1 << 16;
  limit.rlim_cur = std::max(limit.rlim_cur, std::min(limit.rlim_max, kWanted));
  ::setrlimit(RLIMIT_NOFILE, &limit);
}

ApiServerOptions options_of(const ServeArguments& arguments) {
  ApiServerOptions options;
  options.model.path = arguments.model;
  options.model.name = arguments.name.empty() ? name_of(arguments.model) : arguments.name;
  EngineOptions& engine = options.model.engine;
  engine.compute_dtype = arguments.precision == "bf16" ? DType::kBF16 : DType::kF32;
  engine.max_positions = arguments.max_length;
  engine.max_sequences = arguments.max_texts;
  engine.cache_bytes = static_cast<int64_t>(arguments.cache_gb * 1e9);
  arguments.device.set_devices(engine);
  options.model.replicas = arguments.device.replicas;
  options.most_waiting = arguments.queue;
  options.api_keys = keys_of(arguments.api_key_file);
  options.http.num_threads = 2;
  set_address(arguments.listen, options.http);
  return options;
}

// What it would take, without loading or serving anything.
int plan_server(const ServeArguments& arguments) {
  const ServedModel model(options_of(arguments).model);
  const std::string kind = arguments.device.options().kind;
  const EngineMemory memory = model.memory(find_backend_to_plan(kind).kernels());
  if (arguments.json) {
    print_json({{"model", model.path()},
                {"device", kind},
                {"tensor", arguments.device.tensor},
                {"replicas", arguments.device.replicas},
                {"precision", arguments.precision},
                {"max_length", model.max_length()},
                {"max_texts", memory.layout.max_sequences},
                {"cached_tokens", memory.cached_tokens()},
                {"page_tokens", memory.layout.page_size},
                {"bytes", engine_memory_json(memory)},
                {"total_bytes", memory.total_bytes()}});
    return kExitDone;
  }
  print_line(stdout, "{} on {} in {}: up to {} texts at a time, of up to {} tokens", model.path(),
             kind, arguments.precision, memory.layout.max_sequences, model.max_length());
  print_line(stdout, "{}", engine_memory_text(memory, arguments.device.replicas));
  return kExitDone;
}

int serve(const ServeArguments& arguments) {
  const StopRequest stop;  // before any thread begins
  allow_many_files();
  arguments.device.prepare();
  const ApiServerOptions options = options_of(arguments);
  if (options.api_keys.empty() && !is_loopback(options.http.address)) {
    log::warn("{} is open to other machines, and no key is asked for: --api-key-file FILE sets one",
              arguments.listen);
  }
  ApiServer server(options);
  const auto model = server.model();
  print_line(stderr, "model \"{}\" of {}, {} tokens a text, {} on {}", model->name(), model->path(),
             model->max_length(), arguments.precision, server.device().kind());
  print_line(
      stderr, "{}",
      engine_memory_text(model->memory(server.device().kernels()), arguments.device.replicas));
  print_line(stderr, "serving on {}/v1", server.url());
  const int signal = stop.wait();
  print_line(stderr, "{}: answering what is under way, for {} s at most",
             signal == SIGINT ? "SIGINT" : "SIGTERM", arguments.grace_seconds);
  const int64_t num_cut =
      server.stop(std::chrono::milliseconds(static_cast<int64_t>(arguments.grace_seconds * 1e3)));
  if (num_cut > 0) {
    print_line(stderr, "cut off {}, whose answers were not complete",
               counted(num_cut, "connection"));
  }
  return kExitDone;
}

}  // namespace

void add_serve_command(CLI::App& app, CommandContext& context) {
  const auto options = std::make_shared<ServeArguments>();
  CLI::App* command = app.add_subcommand("serve", "Serve a model as OpenAI's API does");
  as_path(
      command->add_option("MODEL", options->model, "a Hugging Face folder, a checkpoint or a run"))
      ->required();
  command->add_option("--listen", options->listen,
                      "ADDRESS:PORT, 127.0.0.1:8000; port 0: any that is free");
  as_path_of_a_disk(command->add_option(
      "--api-key-file", options->api_key_file,
      "keys, one a line, of which clients give one; else the key in SKEIN_API_KEY; else none"));
  command->add_option("--served-model-name", options->name,
                      "what requests call the model; default: the last part of its path");
  add_precision_option(*command, options->precision);
  command
      ->add_option("--max-length,--max-model-len", options->max_length,
                   "tokens of a text, new ones included; default: all that the model is meant for")
      ->check(whole_number_from(1));
  command->add_option("--max-texts,--max-num-seqs", options->max_texts, "under way at a time, 64")
      ->check(whole_number_from(1, 4096));
  command->add_option("--queue", options->queue, "texts that wait at most, 256; more get 429")
      ->check(whole_number_from(1));
  command
      ->add_option("--cache-gb", options->cache_gb,
                   "of keys and values on each device, 0.27; room for at least one text")
      ->check(number_between(0.001, 1e5));
  command
      ->add_option("--grace", options->grace_seconds,
                   "seconds for answers that are under way at SIGTERM, 30")
      ->check(number_from(0));
  add_device_options(*command, options->device);
  add_rank_options(*command, options->device);
  CLI::Option* plan = command->add_flag(
      "--plan", options->plan, "say how much memory it takes, to the byte, and serve nothing");
  command->add_flag("--json", options->json, "of --plan: print one JSON document")->needs(plan);
  command->callback([&context, options] {
    context.computes = !options->plan;
    context.run = [options] { return options->plan ? plan_server(*options) : serve(*options); };
  });
}

}  // namespace skein
