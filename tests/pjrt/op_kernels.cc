#include "tests/pjrt/op_kernels.h"

#include <cstring>
#include <map>
#include <memory>
#include <utility>

#include "skein/ops/ops.h"
#include "skein/stablehlo/lower.h"
#include "skein/stablehlo/narrow.h"

namespace skein::pjrt_test {
namespace {

constexpr size_t kMostOps = 96;

const PjrtClient* the_client = nullptr;

// Operands that lie one after the other in an arena of their own.
class Places {
 public:
  Operand place(const View& view) {
    if (view.shape.rank() == 0) return {};
    Operand operand;
    operand.arena = Arena::kInputs;
    operand.offset_bytes = next_;
    operand.dtype = view.dtype;
    operand.shape = view.shape;
    operand.row_stride = view.shape.cols();
    next_ += (operand.shape.num_elements() * size_of(view.dtype) / 256 + 1) * 256;
    return operand;
  }

 private:
  int64_t next_ = 0;
};

std::vector<char> dense(const View& view) {
  const int64_t row = view.cols() * size_of(view.dtype);
  std::vector<char> bytes(static_cast<size_t>(view.rows() * row));
  for (int64_t i = 0; i < view.rows(); ++i) {
    std::memcpy(bytes.data() + i * row,
                view.as<const char>() + i * view.row_stride * size_of(view.dtype),
                static_cast<size_t>(row));
  }
  return bytes;
}

void store(const std::vector<char>& bytes, const View& view) {
  const int64_t row = view.cols() * size_of(view.dtype);
  for (int64_t i = 0; i < view.rows(); ++i) {
    std::memcpy(view.as<char>() + i * view.row_stride * size_of(view.dtype), bytes.data() + i * row,
                static_cast<size_t>(row));
  }
}

const PjrtExecutable& compiled(const std::string& text) {
  static std::map<std::string, std::unique_ptr<PjrtExecutable>> known;
  auto& executable = known[text];
  if (executable == nullptr) executable = the_client->compile(text, 1);
  return *executable;
}

// As the signature of the module has it.
stablehlo::Cell outer(stablehlo::Cell cell) {
  if (the_client->is_narrow()) cell.type = stablehlo::outer_type(cell.type);
  return cell;
}

void run_op(const OpDef& op, const KernelCall& call) {
  Places places;
  Instruction instruction;
  instruction.op = &op;
  instruction.attrs = call.attrs;
  std::map<stablehlo::Cell, const View*> views;
  stablehlo::CellMap kept;
  for (const View& view : call.inputs) {
    instruction.inputs.push_back(places.place(view));
    if (!instruction.inputs.back().present()) continue;
    views[outer(stablehlo::Cell::of(instruction.inputs.back(), 0))] = &view;
  }
  for (const View& view : call.outputs) {
    instruction.outputs.push_back(places.place(view));
    const stablehlo::Cell cell = stablehlo::Cell::of(instruction.outputs.back(), 0);
    views[outer(cell)] = &view;
    kept.insert(cell);
  }
  static const stablehlo::RuleTable rules = stablehlo_rules();
  const Mesh mesh = Mesh::standard(1, 1, 1, 1);
  const stablehlo::Module module = stablehlo::write_module(
      {"op", mesh, {0}, {std::span(&instruction, 1)}, kept, nullptr, the_client->is_narrow()},
      rules);
  std::vector<PjrtBuffer> buffers;
  std::vector<PJRT_Buffer*> arguments;
  for (const stablehlo::Cell& cell : module.arguments) {
    buffers.push_back(the_client->put(dense(*views.at(cell)).data(), cell.type));
    arguments.push_back(buffers.back().get());
  }
  const auto results =
      the_client->execute(compiled(module.text), {arguments}, module.results.size());
  for (size_t i = 0; i < module.results.size(); ++i) {
    std::vector<char> bytes(static_cast<size_t>(module.results[i].type.num_bytes()));
    the_client->get(results[0][i], bytes.data(), std::ssize(bytes));
    store(bytes, *views.at(module.results[i]));
  }
}

const OpTable& ops() {
  static const OpTable table = all_ops();
  return table;
}

// A kernel is a plain function, so that there is one for each op.
template <size_t index>
void run(const KernelCall& call) {
  run_op(*ops().at(index), call);
}

template <size_t... indices>
KernelTable kernels_of(std::index_sequence<indices...>) {
  constexpr void (*kRuns[])(const KernelCall&) = {run<indices>...};
  if (ops().size() > kMostOps) fail(ErrorCode::kInternal, "more than {} ops", kMostOps);
  KernelTable table;
  for (size_t i = 0; i < ops().size(); ++i) table[ops()[i]->name] = {.run = kRuns[i]};
  return table;
}

}  // namespace

const PjrtClient& client_under_test() { return *the_client; }

KernelTable op_kernels(const PjrtClient& client) {
  the_client = &client;
  return kernels_of(std::make_index_sequence<kMostOps>());
}

}  // namespace skein::pjrt_test
