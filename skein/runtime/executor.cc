#include "skein/runtime/executor.h"

#include <algorithm>
#include <chrono>

#include "skein/base/error.h"
#include "skein/base/shared/heartbeat.h"
#include "skein/runtime/independent_calls.h"
#include "skein/runtime/op_range.h"

namespace skein {
namespace {

// One progress mark per so many ops, so that the marks cost little beside the ops.
constexpr size_t kInstructionsBetweenBreadcrumbs = 32;
// Between two collectives: to start a recording of one op takes no less than to start the op.
constexpr size_t kFewestToRecord = 2;

}  // namespace

Cost OpSpan::cost() const {
  Cost sum;
  for (int64_t i = 0; i < calls; ++i) {
    sum.flops += instruction[i].cost.flops;
    sum.bytes_read += instruction[i].cost.bytes_read;
    sum.bytes_written += instruction[i].cost.bytes_written;
  }
  return sum;
}

Communicators split_by_axis(Communicator& world, const Mesh& mesh, int64_t data_leaves) {
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
    groups[name] = world.group(members, name, name == "dp" ? data_leaves : 0);
    if (name == "pp") groups["pp.backward"] = world.group(members, "pp.backward");
  }
  return groups;
}

Executor::Executor(Device& device, const ProgramSet& programs, const Communicators* communicators)
    : device_(device), programs_(programs), communicators_(communicators) {
  int64_t device_bytes = 0, host_bytes = 0;
  for (int i = 0; i < kNumArenas; ++i) {
    (programs.on_host[i] ? host_bytes : device_bytes) += programs.arena_bytes[i];
  }
  device.require_room(device_bytes, host_bytes);  // the total, before the first arena is allocated
  try {
    for (int i = 0; i < kNumArenas; ++i) {
      const std::string what = fmt::format("the arena '{}'", arena_name(static_cast<Arena>(i)));
      const int64_t bytes = programs.arena_bytes[i];
      bases_[i] =
          programs.on_host[i] ? device.allocate_on_host(bytes, what) : device.allocate(bytes, what);
    }
    int64_t num_slots = 1;
    for (const Program& program : programs.programs) {
      num_slots = std::max(num_slots, program.num_slots);
    }
    facts_.resize(static_cast<size_t>(num_slots));  // calls hold pointers to them
    for (const Program& program : programs.programs) bind(program);
  } catch (...) {
    release_arenas();
    throw;
  }
}

Executor::~Executor() { release_arenas(); }

void Executor::release_arenas() {
  for (int i = 0; i < kNumArenas; ++i) {
    if (programs_.on_host[i]) {
      device_.release_on_host(bases_[i], programs_.arena_bytes[i]);
    } else {
      device_.release(bases_[i], programs_.arena_bytes[i]);
    }
  }
}

void Executor::bind(const Program& program) {
  std::vector<BoundProgram>& slots = bound_[program.name];
  const std::vector<int64_t> places = name_places(program);
  for (int64_t slot = 0; slot < program.num_slots; ++slot) {
    BoundProgram& bound = slots.emplace_back();
    bound.program = &program;
    bound.facts = bound.facts_ahead = &facts_[static_cast<size_t>(slot)];
    bound.places = places;
    for (const Instruction& instruction : program.instructions) {
      if (is_compiled(instruction)) {
        bound.instructions.push_back({nullptr, &instruction, {}});
        continue;
      }
      const int64_t of_instruction = instruction.slot_of(slot, program.num_slots);
      bound.instructions.push_back(bind(instruction, of_instruction));
      if (instruction.ahead > 0) bound.facts_ahead = &facts_[static_cast<size_t>(of_instruction)];
    }
    find_together(bound.instructions);
    bound.pieces = pieces_of(bound.instructions);
    compile(bound, slot);
  }
}

bool Executor::is_compiled(const Instruction& instruction) const {
  return device_.compiles() && stablehlo::is_compiled(instruction, programs_.mesh, programs_.rank,
                                                      device_.ranks_together());
}

void Executor::compile(BoundProgram& bound, int64_t slot) {
  if (!device_.compiles()) return;
  std::vector<stablehlo::Piece> pieces;
  std::vector<ProgramPiece*> of_program;
  for (ProgramPiece& piece : bound.pieces) {
    if (bound.instructions[piece.begin].kernel != nullptr) continue;
    pieces.push_back({piece.begin, piece.end});
    of_program.push_back(&piece);
  }
  auto compiled = device_.compile({programs_, *bound.program, pieces, bases_, slot});
  for (size_t i = 0; i < pieces.size(); ++i) of_program[i]->compiled = std::move(compiled[i]);
}

void Executor::find_together(std::vector<BoundInstruction>& instructions) {
  for (size_t begin = 0, end = 0; begin < instructions.size(); begin = end) {
    const Kernel* const kernel = instructions[begin].kernel;
    if (kernel == nullptr) {  // compiled
      end = begin + 1;
      continue;
    }
    std::vector<const KernelCall*> calls;
    for (end = begin; end < instructions.size() && instructions[end].kernel == kernel; ++end) {
      calls.push_back(&instructions[end].call);
    }
    // Pieces begin and end at calls that communicate.
    const auto communicates = [](const KernelCall* call) {
      return call->communicator != nullptr || call->ticket != nullptr;
    };
    if (kernel->run_together == nullptr || std::any_of(calls.begin(), calls.end(), communicates)) {
      continue;
    }
    calls.resize(num_independent(calls));
    end = begin + calls.size();
    if (calls.size() > 1) instructions[begin].together = std::move(calls);
  }
}

std::vector<Executor::ProgramPiece> Executor::pieces_of(
    const std::vector<BoundInstruction>& instructions) {
  const auto communicates = [](const BoundInstruction& bound) {
    return bound.call.communicator != nullptr;
  };
  const bool any = std::any_of(instructions.begin(), instructions.end(), communicates);
  // Work under way on a channel may begin in one piece and end in another, which only what is
  // recorded whole may hold.
  const auto stays_out = [&](const BoundInstruction& bound) {
    return communicates(bound) || (any && bound.call.ticket != nullptr);
  };
  std::vector<ProgramPiece> pieces;
  for (size_t begin = 0, end = 0; begin < instructions.size(); begin = end) {
    const bool out = stays_out(instructions[begin]);
    while (end < instructions.size() && stays_out(instructions[end]) == out) ++end;
    pieces.push_back({begin, end, !out && (!any || end - begin >= kFewestToRecord), {}});
  }
  return pieces;
}

std::vector<int64_t> Executor::name_places(const Program& program) {
  std::vector<int64_t> places;
  for (size_t i = 0; i < program.instructions.size(); i += kInstructionsBetweenBreadcrumbs) {
    const size_t last =
        std::min(i + kInstructionsBetweenBreadcrumbs, program.instructions.size()) - 1;
    places.push_back(device_.name_breadcrumb(describe_ops(program, i, last)));
  }
  return places;
}

Executor::BoundInstruction Executor::bind(const Instruction& instruction, int64_t slot) {
  const auto kernel = device_.kernels().find(instruction.op->name);
  if (kernel == device_.kernels().end()) {
    fail(ErrorCode::kUnsupported, "{}: device {} has no kernel for it", describe(instruction),
         device_.kind());
  }
  BoundInstruction bound{&kernel->second, &instruction, bind_views(instruction, bases_, slot)};
  bound.call.communicator = communicator_of(instruction);
  bound.call.stream = device_.stream();
  bound.call.facts = &facts_[static_cast<size_t>(slot)];
  if (instruction.attrs.has("channel")) {
    const int64_t depth = instruction.attrs.has("depth") ? instruction.attrs.integer("depth") : 1;
    auto& tickets = tickets_[instruction.attrs.integer("channel")];
    if (tickets.empty()) tickets.resize(depth + 1, -1);
    bound.call.ticket = tickets.data();
  }
  if (bound.kernel->prepare != nullptr && device_.computes()) {
    bound.call.state = bound.kernel->prepare(bound.call);
  }
  return bound;
}

Communicator* Executor::communicator_of(const Instruction& instruction) const {
  if (communicators_ == nullptr || !instruction.attrs.has("axis")) return nullptr;
  const auto found = communicators_->find(instruction.attrs.text("axis"));
  return found == communicators_->end() ? nullptr : found->second.get();
}

void Executor::run(std::string_view program, int64_t slot) {
  const auto found = bound_.find(program);
  if (found == bound_.end()) fail(ErrorCode::kInternal, "there is no program '{}'", program);
  if (!device_.computes()) return;
  try {
    start(found->second.at(static_cast<size_t>(slot)), slot);
  } catch (const Error& error) {
    // An op that fails to start after an asynchronous error is not its cause.
    const std::string behind = error.code() == ErrorCode::kPeerLost ? "" : device_.failure();
    if (behind.empty()) throw;
    fail(ErrorCode::kInternal, "{}", behind);
  }
}

void Executor::choose_algorithms() {
  for (const auto& [name, slots] : bound_) {
    for (const BoundInstruction& bound : slots.at(0).instructions) {
      if (bound.kernel == nullptr || bound.kernel->choose == nullptr) continue;
      bound.kernel->choose(bound.call);
    }
  }
  constexpr auto kGradients = static_cast<size_t>(Arena::kGradients);
  device_.fill_zero(bases_[kGradients], programs_.arena_bytes[kGradients]);
  device_.synchronize();
}

void Executor::run_before(std::string_view program, const std::function<bool(const OpDef&)>& is_op,
                          std::function<void()> act) {
  const auto found = bound_.find(program);
  if (found == bound_.end()) fail(ErrorCode::kInternal, "there is no program '{}'", program);
  for (BoundProgram& slot : found->second) {
    const auto first =
        std::find_if(slot.instructions.begin(), slot.instructions.end(),
                     [&](const BoundInstruction& bound) { return is_op(*bound.instruction->op); });
    if (first == slot.instructions.end()) {
      fail(ErrorCode::kInternal, "program '{}' has no instruction of the op that was asked for",
           program);
    }
    first->before = act;
  }
}

void Executor::start(BoundProgram& program, int64_t slot) {
  if (profiling_ && !device_.compiles()) return run_profiled(program, slot);
  device_.begin_range(program.program->name);
  for (ProgramPiece& piece : program.pieces) run_piece(program, piece);
  device_.end_range();
}

void Executor::run_piece(const BoundProgram& program, ProgramPiece& piece) {
  if (piece.compiled != nullptr) {
    heartbeat::tick();
    return piece.compiled->replay();
  }
  if (!piece.is_recorded || device_.checks_ops()) return run_steps(program, piece);
  Replay& replay = piece.replays[program.facts->one_document_each ? 1 : 0]
                                [program.facts_ahead->one_document_each ? 1 : 0];
  if (replay.ran && replay.recording == nullptr) {
    replay.recording = device_.record([&] { run_steps(program, piece); });
  }
  replay.ran = true;
  if (replay.recording == nullptr) return run_steps(program, piece);
  heartbeat::tick();  // all that is seen of it here
  replay.recording->replay();
}

void Executor::run_steps(const BoundProgram& program, const ProgramPiece& piece) {
  for (size_t i = piece.begin; i < piece.end;) {
    const BoundInstruction& bound = program.instructions[i];
    if (bound.before) bound.before();
    try {
      i += run_from(program, i);
      if (device_.checks_ops()) device_.synchronize();
    } catch (const std::exception& error) {
      const auto* known = dynamic_cast<const Error*>(&error);
      if (known != nullptr && known->code() == ErrorCode::kPeerLost) throw;
      const std::string others =
          bound.together.empty() ? "" : fmt::format(" with {} more", bound.together.size() - 1);
      fail(ErrorCode::kInternal, "{}{} in program {}: {}", describe(*bound.instruction), others,
           program.program->name, error.what());
    }
  }
}

size_t Executor::run_from(const BoundProgram& program, size_t index) {
  const BoundInstruction& bound = program.instructions[index];
  pass_breadcrumb(program, index);
  if (bound.together.empty() || device_.checks_ops()) {
    run_instruction(bound);
    return 1;
  }
  heartbeat::tick();
  heartbeat::require_generation();
  bound.kernel->run_together(bound.together);
  for (size_t i = 1; i < bound.together.size(); ++i) pass_breadcrumb(program, index + i);
  return bound.together.size();
}

void Executor::run_profiled(const BoundProgram& program, int64_t slot) {
  for (size_t i = 0; i < program.instructions.size();) {
    const BoundInstruction& bound = program.instructions[i];
    if (bound.before) bound.before();
    device_.begin_range(describe(*bound.instruction));
    if (at_op_) at_op_(true);
    const int64_t start = device_.record_time();
    const size_t calls = run_from(program, i);
    const int64_t end = device_.record_time();
    if (at_op_) at_op_(false);
    timed_.push_back({bound.instruction, static_cast<int64_t>(calls), program.program,
                      bound.instruction->slot_of(slot, program.program->num_slots), start, end});
    device_.end_range();
    i += calls;
  }
}

void Executor::pass_breadcrumb(const BoundProgram& program, size_t instruction) {
  if (instruction % kInstructionsBetweenBreadcrumbs == 0)
    device_.pass_breadcrumb(program.places[instruction / kInstructionsBetweenBreadcrumbs]);
}

void Executor::run_instruction(const BoundInstruction& bound) {
  heartbeat::tick();
  heartbeat::require_generation();
  if (bound.call.communicator == nullptr) return run_kernel(bound);
  const auto start = std::chrono::steady_clock::now();
  run_kernel(bound);
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
  communication_seconds_ += took.count();
}

void Executor::run_kernel(const BoundInstruction& bound) {
  for (const auto* views : {&bound.call.inputs, &bound.call.outputs}) {
    for (const View& view : *views) device_.begin_host_access(view);
  }
  bound.kernel->run(bound.call);
  for (const View& view : bound.call.outputs) device_.end_host_write(view);
}

std::vector<OpSpan> Executor::take_spans() {
  device_.synchronize();
  std::vector<OpSpan> spans;
  for (const StampedStep& timed : timed_) {
    spans.push_back({timed.instruction, timed.calls, timed.program->name, timed.slot,
                     device_.seconds_at(timed.start), device_.seconds_at(timed.end)});
  }
  timed_.clear();
  device_.forget_times();
  return spans;
}

const std::map<std::string, OpTime>& Executor::profile() {
  for (const OpSpan& span : take_spans()) {
    OpTime& time = profile_[std::string(span.instruction->op->name)];
    const Cost cost = span.cost();
    time.calls += span.calls;
    time.seconds += span.end - span.start;
    time.flops += cost.flops;
    time.bytes += static_cast<double>(cost.bytes_read + cost.bytes_written);
  }
  return profile_;
}

View Executor::view(std::string_view name, int64_t slot) const {
  const Operand& operand = programs_.operand(name);
  return operand.view(bases_[static_cast<int>(operand.arena)], slot);
}

// The view of a value, which must have `bytes` bytes.
View Executor::sized_view(std::string_view name, int64_t bytes, int64_t slot) const {
  const View found = view(name, slot);
  if (bytes != found.num_bytes()) {
    fail(ErrorCode::kInternal, "'{}' has {} bytes, not {}", name, found.num_bytes(), bytes);
  }
  return found;
}

void Executor::upload(std::string_view name, const void* host, int64_t bytes, int64_t slot) {
  device_.upload(sized_view(name, bytes, slot).data, host, bytes);
}

void Executor::download(std::string_view name, void* host, int64_t bytes) const {
  device_.download(host, sized_view(name, bytes).data, bytes);
}

void Executor::fill_zero(std::string_view name) {
  const View target = view(name);
  device_.fill_zero(target.data, target.num_bytes());
}

}  // namespace skein
