#include <charconv>
#include <optional>

#include "skein/ir/graph_text.h"

namespace skein {
namespace {

// A cursor over one line of text.
class LineCursor {
 public:
  LineCursor(std::string_view text, int number) : text_(text), number_(number) { skip_spaces(); }

  template <typename... Args>
  [[noreturn]] void reject(fmt::format_string<Args...> format, Args&&... args) const {
    fail(ErrorCode::kInvalid, "line {}: {}", number_,
         fmt::format(format, std::forward<Args>(args)...));
  }

  bool at_end() const { return text_.empty(); }
  bool accept(std::string_view token) {
    if (!text_.starts_with(token)) return false;
    text_.remove_prefix(token.size());
    skip_spaces();
    return true;
  }
  void expect(std::string_view token) {
    if (!accept(token)) {
      reject("expected '{}' before '{}'", token, at_end() ? "the end of the line" : text_);
    }
  }

  std::string_view name() {
    size_t length = 0;
    while (length < text_.size() &&
           (std::isalnum(static_cast<unsigned char>(text_[length])) != 0 ||
            std::string_view("_.'/").find(text_[length]) != std::string_view::npos)) {
      ++length;
    }
    if (length == 0) reject("expected a name before '{}'", text_);
    return take(length);
  }

  int64_t integer() {
    int64_t value = 0;
    const auto [end, error] = std::from_chars(text_.data(), text_.data() + text_.size(), value);
    if (error != std::errc()) reject("expected an integer before '{}'", text_);
    take(static_cast<size_t>(end - text_.data()));
    return value;
  }

  std::string_view number() {
    const size_t length = text_.find_first_not_of("+-.0123456789einfa");
    return take(length == std::string_view::npos ? text_.size() : length);
  }

  std::string quoted() {
    expect("\"");
    const size_t length = text_.find('"');
    if (length == std::string_view::npos) reject("a quotation mark is missing");
    std::string result(text_.substr(0, length));
    take(length);
    expect("\"");
    return result;
  }

 private:
  std::string_view take(size_t length) {
    const std::string_view token = text_.substr(0, length);
    text_.remove_prefix(length);
    skip_spaces();
    return token;
  }
  void skip_spaces() {
    while (!text_.empty() && text_.front() == ' ') text_.remove_prefix(1);
  }

  std::string_view text_;
  int number_;
};

std::vector<int64_t> parse_integers(LineCursor& line) {
  std::vector<int64_t> list;
  line.expect("[");
  while (!line.accept("]")) {
    if (!list.empty()) line.expect(",");
    list.push_back(line.integer());
  }
  return list;
}

AttrValue parse_attr_value(LineCursor& line) {
  if (line.accept("true")) return true;
  if (line.accept("false")) return false;
  LineCursor probe = line;
  if (probe.accept("[")) return parse_integers(line);
  if (probe.accept("\"")) return line.quoted();
  const std::string_view token = line.number();
  if (token.find_first_of(".eEn") == std::string_view::npos) {
    int64_t value = 0;
    const auto [end, error] = std::from_chars(token.data(), token.data() + token.size(), value);
    if (error == std::errc() && end == token.data() + token.size()) return value;
  } else {
    double value = 0;
    const auto [end, error] = std::from_chars(token.data(), token.data() + token.size(), value);
    if (error == std::errc() && end == token.data() + token.size()) return value;
  }
  line.reject("'{}' is not the value of an attr", token);
}

TensorType parse_type(LineCursor& line, const Mesh& mesh) {
  const std::string_view dtype_text = line.name();
  const std::optional<DType> dtype = parse_dtype(dtype_text);
  if (!dtype) line.reject("'{}' is not a dtype: expected f32, bf16, i32 or f64", dtype_text);
  TensorType type = TensorType::replicated(*dtype, Shape(parse_integers(line)), mesh);
  if (!line.accept("{")) return type;
  while (!line.accept("}")) {
    const std::string_view axis_name = line.name();
    const int axis = mesh.find(axis_name);
    if (axis < 0) line.reject("{} has no axis '{}'", mesh.to_string(), axis_name);
    line.expect(":");
    type.placements[axis] = Placement::parse(line.name());
  }
  return type;
}

class GraphParser {
 public:
  GraphParser(std::string_view text, const OpTable& ops) : text_(text), ops_(ops) {}

  Graph run() {
    LineCursor header = next();
    header.expect("skein graph");
    LineCursor mesh_line = next();
    mesh_line.expect("mesh");
    std::vector<MeshAxis> axes;
    while (!mesh_line.at_end()) {
      MeshAxis axis;
      axis.name = mesh_line.name();
      mesh_line.expect("=");
      axis.size = mesh_line.integer();
      if (axis.size < 1) mesh_line.reject("axis {} has size {}", axis.name, axis.size);
      axes.push_back(std::move(axis));
    }
    Graph graph{Mesh(std::move(axes))};
    while (position_ < text_.size()) {
      LineCursor line = next();
      if (!line.at_end()) statement(graph, line);
    }
    return graph;
  }

 private:
  LineCursor next() {
    const size_t end = std::min(text_.find('\n', position_), text_.size());
    LineCursor line(text_.substr(position_, end - position_), ++number_);
    position_ = end + 1;
    return line;
  }

  void statement(Graph& graph, LineCursor& line) {
    for (const Role role : {Role::kParameter, Role::kGradient, Role::kOptimizer, Role::kInput,
                            Role::kRounded, Role::kCache}) {
      if (!line.accept(fmt::format("{} ", role_name(role)))) continue;
      const std::string name(line.name());
      line.expect(":");
      graph.add_input(role, name, parse_type(line, graph.mesh()));
      return;
    }
    if (line.accept("output ")) return graph.mark_output(use(graph, line));
    for (const Phase phase : {Phase::kForward, Phase::kBackward, Phase::kUpdate}) {
      LineCursor probe = line;
      if (probe.accept(phase_name(phase)) && probe.at_end()) return graph.set_phase(phase);
    }
    node(graph, line);
  }

  static ValueId use(const Graph& graph, LineCursor& line) {
    const std::string_view name = line.name();
    if (name == "_") return kNoValue;
    const ValueId id = graph.find(name);
    if (id == kNoValue) line.reject("'{}' is not defined", name);
    return id;
  }

  void node(Graph& graph, LineCursor& line) {
    std::vector<std::string> names{std::string(line.name())};
    while (line.accept(",")) names.emplace_back(line.name());
    line.expect("=");
    const std::string_view op_name = line.name();
    const OpDef* op = find_op(ops_, op_name);
    if (op == nullptr) line.reject("there is no op '{}'", op_name);
    line.expect("(");
    std::vector<ValueId> inputs;
    while (!line.accept(")")) {
      if (!inputs.empty()) line.expect(",");
      inputs.push_back(use(graph, line));
    }
    Attrs attrs;
    if (line.accept("{")) {
      while (!line.accept("}")) {
        if (!attrs.empty()) line.expect(",");
        const std::string name(line.name());
        line.expect("=");
        attrs.set(name, parse_attr_value(line));
      }
    }
    line.expect(":");
    std::vector<TensorType> types;
    std::vector<bool> transient;
    do {
      types.push_back(parse_type(line, graph.mesh()));
      transient.push_back(line.accept("!"));
    } while (line.accept(","));
    graph.set_scope(line.accept("@") ? Scope::named(line.name()) : Scope());
    graph.set_chunk(line.accept("#") ? static_cast<int>(line.integer()) : 0);
    graph.set_last_only(line.accept("last"));
    add(graph, line, *op, std::move(inputs), std::move(attrs), names, types, transient);
  }

  static void add(Graph& graph, const LineCursor& line, const OpDef& op,
                  std::vector<ValueId> inputs, Attrs attrs, const std::vector<std::string>& names,
                  const std::vector<TensorType>& types, const std::vector<bool>& transient) {
    for (const std::string& name : names) {
      if (graph.find(name) != kNoValue) line.reject("'{}' is defined twice", name);
    }
    const std::vector<ValueId> outputs = graph.add(op, std::move(inputs), std::move(attrs), names);
    if (types.size() != outputs.size()) {
      line.reject("{} types for {} outputs", types.size(), outputs.size());
    }
    for (size_t i = 0; i < outputs.size(); ++i) {
      if (!(graph.type(outputs[i]) == types[i])) {
        line.reject("'{}' is given as {}, the op infers {}", names[i],
                    types[i].to_string(graph.mesh()),
                    graph.type(outputs[i]).to_string(graph.mesh()));
      }
      graph.value(outputs[i]).transient = transient[i];
    }
  }

  std::string_view text_;
  const OpTable& ops_;
  size_t position_ = 0;
  int number_ = 0;
};

}  // namespace

Graph parse_graph(std::string_view text, const OpTable& ops) {
  return GraphParser(text, ops).run();
}

}  // namespace skein
