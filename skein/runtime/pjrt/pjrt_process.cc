#include "skein/runtime/pjrt/pjrt_process.h"

#include <map>
#include <utility>

#include "skein/base/threads/mutex.h"

namespace skein {

std::shared_ptr<PjrtProcess> PjrtProcess::join(const PjrtOptions& options, int64_t group) {
  static Mutex mutex;
  static std::map<std::pair<std::string, int64_t>, std::weak_ptr<PjrtProcess>> joined;
  const Lock lock(mutex);
  std::weak_ptr<PjrtProcess>& known = joined[{options.plugin, group}];
  std::shared_ptr<PjrtProcess> process = options.num_devices > 1 ? known.lock() : nullptr;
  if (process == nullptr) {
    process = std::make_shared<PjrtProcess>(options, std::max<int64_t>(1, options.num_devices));
    known = process;
  }
  return process;
}

PjrtProcess::PjrtProcess(const PjrtOptions& options, int64_t size)
    : size_(size),
      client_(options),
      compiler_(client_, options),
      compiling_(static_cast<size_t>(size)),
      running_(static_cast<size_t>(size)) {}

std::shared_ptr<const PjrtProcess::Compiled> PjrtProcess::compile(
    int64_t device, const Part& part, const stablehlo::RuleTable& rules) {
  ToCompile mine{&part, nullptr};
  const auto compile_all = [&](const std::vector<ToCompile*>& all) {
    stablehlo::ModuleRequest request{part.name, part.mesh, {}, {}, all.front()->part->kept};
    for (const ToCompile* one : all) {
      request.ranks.push_back(one->part->rank);
      request.instructions.push_back(one->part->instructions);
    }
    request.is_narrow = client_.is_narrow();
    auto made = std::make_shared<Compiled>();
    made->module = stablehlo::write_module(request, rules);
    made->executable = compiler_.start(part.name, made->module.text, size_);
    made->module.text.clear();
    for (ToCompile* one : all) one->compiled = made;
  };
  compiling_.call(static_cast<size_t>(device), mine, compile_all);
  return mine.compiled;
}

std::vector<PjrtBuffer> PjrtProcess::execute(int64_t device, const Compiled& compiled,
                                             const std::vector<PJRT_Buffer*>& arguments) {
  ToRun mine{&compiled, &arguments, {}};
  const auto execute_all = [&](const std::vector<ToRun*>& all) {
    std::vector<std::vector<PJRT_Buffer*>> argument_lists;
    for (const ToRun* one : all) {
      if (one->compiled != &compiled) {
        fail(ErrorCode::kInternal, "the ranks of this process came to run different programs");
      }
      argument_lists.push_back(*one->arguments);
    }
    auto results =
        client_.execute(*compiled.executable.get(), argument_lists, compiled.module.results.size());
    for (size_t i = 0; i < all.size(); ++i) all[i]->results = std::move(results[i]);
  };
  running_.call(static_cast<size_t>(device), mine, execute_all);
  return std::move(mine.results);
}

void PjrtProcess::leave() {
  const std::string cause = "another rank of this process has ended";
  compiling_.end(cause);
  running_.end(cause);
}

}  // namespace skein
