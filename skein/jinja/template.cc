#include "skein/jinja/template.h"

#include <utility>

#include "skein/jinja/renderer.h"
#include "skein/jinja/syntax/parser.h"

namespace skein::jinja {

struct Template::Tree {
  std::shared_ptr<const FilterMap> filters;
  Body body;
};

Template::Template(std::string_view source, std::string name, const Syntax& syntax)
    : name_(std::move(name)), source_(source), tree_(std::make_unique<Tree>()) {
  constexpr size_t kMaxSource = size_t{4} << 20;
  if (source.size() > kMaxSource) {
    fail(ErrorCode::kInvalid, "{}: a template of {} bytes; at most {} are read", name_,
         source.size(), kMaxSource);
  }
  tree_->filters = syntax.filters;
  Parser parser(tokens_of(source, name_, syntax), name_, syntax.filters.get());
  tree_->body = parser.parse();
  has_generation_ = parser.has_generation();
}

Template::~Template() = default;
Template::Template(Template&&) noexcept = default;
Template& Template::operator=(Template&&) noexcept = default;

bool Template::spells(std::string_view word) const {
  return source_.find(word) != std::string::npos;
}

Rendered Template::render(const Value& variables, const RenderOptions& options) const {
  return Renderer(name_, variables, options).render(tree_->body);
}

}  // namespace skein::jinja
