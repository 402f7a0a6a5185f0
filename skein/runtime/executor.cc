#include "skein/runtime/executor.h"

#include <chrono>

#include "skein/base/error.h"

namespace skein {
namespace {

std::string describe(const Step& step) {
  std::string text = fmt::format("[{}]", step.op->name);
  for (const Operand& operand : step.inputs) {
    if (operand.present()) {
      text += fmt::format(" {}{}", dtype_name(operand.dtype), operand.shape.to_string());
    }
  }
  return step.scope.empty() ? text : text + " (" + step.scope + ")";
}

}  // namespace

Communicators split_by_axis(Communicator& world, const Mesh& mesh) {
  Communicators groups;
  const std::vector<int64_t> mine = mesh.coordinates(world.rank());
  for (int axis = 0; axis < mesh.num_axes(); ++axis) {
    if (mesh.axis(axis).size == 1) continue;
    std::vector<int> members;
    for (int rank = 0; rank < world.size(); ++rank) {
      std::vector<int64_t> theirs = mesh.coordinates(rank);
      theirs[axis] = mine[axis];
      if (theirs == mine) members.push_back(rank);
    }
    const std::string& name = mesh.axis(axis).name;
    groups[name] = world.group(members, name);
    if (name == "pp") groups["pp.backward"] = world.group(members, "pp.backward");
  }
  return groups;
}

Executor::Executor(Device& device, const ProgramSet& programs, const Communicators* communicators)
    : device_(device), programs_(programs), communicators_(communicators) {
  try {
    for (int i = 0; i < kNumArenas; ++i) {
      const Arena arena = static_cast<Arena>(i);
      bases_[i] = device.allocate(programs.arena_bytes[i],
                                  fmt::format("the arena '{}'", arena_name(arena)));
    }
    for (const Program& program : programs.programs) bind(program);
  } catch (...) {
    for (int i = 0; i < kNumArenas; ++i) device_.release(bases_[i], programs_.arena_bytes[i]);
    throw;
  }
}

Executor::~Executor() {
  for (int i = 0; i < kNumArenas; ++i) device_.release(bases_[i], programs_.arena_bytes[i]);
}

void Executor::bind(const Program& program) {
  std::vector<std::vector<BoundStep>>& slots = bound_[program.name];
  for (int64_t slot = 0; slot < program.num_slots; ++slot) {
    slots.emplace_back();
    for (const Step& step : program.steps) slots.back().push_back(bind(step, slot));
  }
}

Executor::BoundStep Executor::bind(const Step& step, int64_t slot) {
  const auto kernel = device_.kernels().find(step.op->name);
  if (kernel == device_.kernels().end()) {
    fail(ErrorCode::kUnsupported, "{}: device {} has no kernel for it", describe(step),
         device_.kind());
  }
  BoundStep bound{&kernel->second, &step, bind_views(step, bases_, slot)};
  bound.call.communicator = communicator_of(step);
  if (step.attrs.has("channel")) {
    const int64_t depth = step.attrs.has("depth") ? step.attrs.integer("depth") : 1;
    auto& tickets = tickets_[step.attrs.integer("channel")];
    if (tickets.empty()) tickets.resize(depth + 1, -1);
    bound.call.ticket = tickets.data();
  }
  if (bound.kernel->prepare != nullptr && device_.kind() != "null") {
    bound.call.state = bound.kernel->prepare(bound.call);
  }
  return bound;
}

Communicator* Executor::communicator_of(const Step& step) const {
  if (communicators_ == nullptr || !step.attrs.has("axis")) return nullptr;
  const auto found = communicators_->find(step.attrs.text("axis"));
  return found == communicators_->end() ? nullptr : found->second.get();
}

void Executor::run(std::string_view program, int64_t slot) {
  const auto found = bound_.find(program);
  if (found == bound_.end()) fail(ErrorCode::kInternal, "there is no program '{}'", program);
  if (device_.kind() == "null") return;
  const std::vector<BoundStep>& steps = found->second.at(static_cast<size_t>(slot));
  if (profiling_) return run_profiled(steps);
  for (const BoundStep& bound : steps) {
    try {
      run_step(bound);
    } catch (const std::exception& error) {
      const auto* known = dynamic_cast<const Error*>(&error);
      if (known != nullptr && known->code() == ErrorCode::kPeerLost) throw;
      fail(ErrorCode::kInternal, "{} in program {}: {}", describe(*bound.step), program,
           error.what());
    }
  }
}

void Executor::run_step(const BoundStep& bound) {
  if (bound.call.communicator == nullptr) return bound.kernel->run(bound.call);
  const auto start = std::chrono::steady_clock::now();
  bound.kernel->run(bound.call);
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
  communication_seconds_ += took.count();
}

void Executor::run_profiled(const std::vector<BoundStep>& steps) {
  for (const BoundStep& bound : steps) {
    const auto start = std::chrono::steady_clock::now();
    bound.kernel->run(bound.call);
    device_.synchronize();
    OpTime& time = profile_[std::string(bound.step->op->name)];
    time.calls += 1;
    time.seconds += std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    time.flops += bound.step->cost.flops;
    time.bytes += static_cast<double>(bound.step->cost.bytes_read + bound.step->cost.bytes_written);
  }
}

View Executor::view(std::string_view name) const {
  const Operand& operand = programs_.operand(name);
  return operand.view(bases_[static_cast<int>(operand.arena)]);
}

void Executor::upload(std::string_view name, const void* host, int64_t bytes) {
  const View target = view(name);
  if (bytes != target.num_bytes()) {
    fail(ErrorCode::kInternal, "'{}' has {} bytes, {} were given", name, target.num_bytes(), bytes);
  }
  device_.upload(target.data, host, bytes);
}

void Executor::download(std::string_view name, void* host, int64_t bytes) const {
  const View source = view(name);
  if (bytes != source.num_bytes()) {
    fail(ErrorCode::kInternal, "'{}' has {} bytes, {} were asked", name, source.num_bytes(), bytes);
  }
  device_.download(host, source.data, bytes);
}

}  // namespace skein
