#include "skein/data/corpus/text_field.h"

#include <arrow/array/array_nested.h>
#include <arrow/record_batch.h>
#include <arrow/type.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "skein/base/error.h"
#include "skein/data/corpus/copied_text.h"

namespace skein {
namespace {

constexpr size_t kMostPlaces = 5;
constexpr int kMaxDepth = 8;
constexpr const char* kTextNames[] = {"text", "content", "raw_content"};

using Fields = std::vector<std::shared_ptr<arrow::Field>>;

// The places of the fields of this name.
std::vector<int> named(const Fields& fields, const std::string& name) {
  std::vector<int> found;
  for (size_t i = 0; i < fields.size(); ++i) {
    if (fields[i]->name() == name) found.push_back(static_cast<int>(i));
  }
  return found;
}

// All fields that a path of names leads to; a name may have dots itself.
void find_inside(const Fields& fields, const std::string& path, std::vector<int>& at,
                 std::vector<std::vector<int>>& found) {
  for (const int i : named(fields, path)) {
    found.push_back(at);
    found.back().push_back(i);
  }
  for (size_t dot = path.find('.'); dot != path.npos; dot = path.find('.', dot + 1)) {
    for (const int i : named(fields, path.substr(0, dot))) {
      const arrow::DataType& type = *fields[static_cast<size_t>(i)]->type();
      if (type.id() != arrow::Type::STRUCT) continue;
      at.push_back(i);
      find_inside(type.fields(), path.substr(dot + 1), at, found);
      at.pop_back();
    }
  }
}

void find_places(const Fields& fields, const std::string& prefix, int depth,
                 std::vector<std::string>& paths) {
  for (const auto& field : fields) {
    if (paths.size() == kMostPlaces) return;
    const std::string path = prefix + field->name();
    const bool is_text = std::find(std::begin(kTextNames), std::end(kTextNames), field->name()) !=
                         std::end(kTextNames);
    const arrow::DataType& type = *field->type();
    if (is_text && depth > 0 && (is_text_type(type) || is_copied_text(type))) paths.push_back(path);
    if (type.id() == arrow::Type::STRUCT && depth < kMaxDepth) {
      find_places(type.fields(), path + ".", depth + 1, paths);
    }
  }
}

std::vector<std::vector<int>> fields_of(const arrow::Schema& schema, const std::string& name) {
  std::vector<std::vector<int>> found;
  for (const int i : named(schema.fields(), name)) found.push_back({i});
  std::vector<int> at;
  if (found.empty()) find_inside(schema.fields(), name, at, found);
  return found;
}

}  // namespace

std::string advice_of_places(const std::vector<std::string>& paths) {
  if (paths.empty()) return "";
  if (paths.size() == 1) {
    return fmt::format("; it has one inside: --text-column {} reads it", paths[0]);
  }
  return fmt::format("; it has some inside, {}: --text-column {} reads the first",
                     fmt::join(paths, ", "), paths[0]);
}

TextField text_field(const arrow::Schema& schema, const fs::path& name,
                     const std::vector<std::string>& columns, TextTypes types) {
  const std::string column =
      first_of(columns, [&](const std::string& each) { return !fields_of(schema, each).empty(); });
  const std::vector<std::vector<int>> found = fields_of(schema, column);
  if (found.size() != 1) {
    std::string names;
    for (const auto& field : schema.fields()) {
      names += (names.empty() ? "" : ", ") + field->name();
      if (names.size() > 200) break;
    }
    std::vector<std::string> places;
    find_places(schema.fields(), "", 0, places);
    fail(ErrorCode::kInvalid,
         "{}: has {} columns named `{}` (its columns: {}): expected one (`skein data ingest "
         "--text-column` takes another){}",
         name.string(), found.size(), column, names.empty() ? "none" : names,
         advice_of_places(places));
  }
  TextField field{found[0].front(), {found[0].begin() + 1, found[0].end()}};
  std::shared_ptr<arrow::DataType> type = schema.field(field.column)->type();
  for (const int inside : field.inside) type = type->field(inside)->type();
  const bool may_be_copied = is_copied_text(*type);
  if (!is_text_type(*type) && (!may_be_copied || types == TextTypes::kMapped)) {
    fail(ErrorCode::kInvalid, "{}: column `{}` is of type {}: expected string or large_string{}",
         name.string(), column, type->ToString(),
         may_be_copied ? "; `skein data ingest --out NEW.arrow` rewrites it" : "");
  }
  return field;
}

arrow::Result<std::shared_ptr<arrow::ArrayData>> column_of(const arrow::RecordBatch& batch,
                                                           const TextField& field,
                                                           arrow::MemoryPool* pool) {
  if (field.inside.empty()) return batch.column_data(0);
  std::shared_ptr<arrow::Array> column = batch.column(0);
  ARROW_RETURN_NOT_OK(column->Validate());  // a damaged file's structures are longer than they are
  for (const int inside : field.inside) {
    const auto& structure = static_cast<const arrow::StructArray&>(*column);
    ARROW_ASSIGN_OR_RAISE(column, structure.GetFlattenedField(inside, pool));
  }
  return column->data();
}

}  // namespace skein
