#include "skein/evaluate/requests/written_requests.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "skein/base/error.h"
#include "skein/base/text/json.h"
#include "skein/evaluate/documents/table_file.h"

namespace skein {
namespace {

constexpr int64_t kFirstWithoutContext = 1'000'000;

class RequestLine {
 public:
  RequestLine(std::string_view line, std::string where)
      : where_(std::move(where)), json_(parse_json(line, where_)) {
    if (!json_.is_object()) wrong("expected an object");
    // Of the second type OLMES also generates; its perplexity_context is the context.
    const std::string type = text(json_, "request_type");
    if (type != "loglikelihood" && type != "generate_until_and_loglikelihood") {
      fail(ErrorCode::kUnsupported,
           "{}: request_type is {}: expected loglikelihood or generate_until_and_loglikelihood",
           where_, type);
    }
    if (!json_.contains("request") || !json_.at("request").is_object()) {
      wrong("expected an object \"request\"");
    }
  }

  int64_t doc_id() const { return integer("doc_id"); }
  int64_t idx() const { return integer("idx"); }
  std::string context() const { return text(json_.at("request"), "context"); }
  std::string continuation() const {
    std::string found = text(json_.at("request"), "continuation");
    if (found.empty()) wrong("the continuation is empty");
    return found;
  }
  // Nothing: it is no index.
  std::optional<int64_t> label() const {
    const auto found = json_.find("label");
    if (found == json_.end() || !found->is_number_integer()) return std::nullopt;
    return found->get<int64_t>();
  }
  [[noreturn]] void wrong(std::string_view what) const {
    fail(ErrorCode::kInvalid, "{}: {}", where_, what);
  }

 private:
  std::string text(const Json& json, const char* key) const {
    const auto found = json.find(key);
    if (found == json.end() || !found->is_string()) {
      wrong(fmt::format("expected a text \"{}\"", key));
    }
    return found->get<std::string>();
  }
  int64_t integer(const char* key) const {
    const auto found = json_.find(key);
    if (found == json_.end() || !found->is_number_integer()) {
      wrong(fmt::format("expected a whole number \"{}\"", key));
    }
    return found->get<int64_t>();
  }

  std::string where_;
  Json json_;
};

void add_choice(const RequestLine& line, DocumentRequests& document) {
  const auto index = std::ssize(document.requests);
  if (line.idx() != index) {
    line.wrong(fmt::format("idx is {}, expected {}: the choices of a document in order", line.idx(),
                           index));
  }
  document.requests.push_back({EvaluationRequest::Kind::kLoglikelihood, line.context(),
                               line.continuation(), document.document, index});
  document.choices.push_back(document.requests.back().continuation);
  document.contexts.push_back(document.requests.back().context);
  document.target = jinja::Value::integer(line.label().value_or(0));
}

void check_label(const RequestLine& last, const DocumentRequests& document) {
  const auto count = std::ssize(document.choices);
  const std::optional<int64_t> label = last.label();
  if (count == 1 && !(label && *label == 0)) return;
  if (label && *label >= 0 && *label < count) return;
  last.wrong(
      fmt::format("the label of a document with {} choices: expected 0 to {}", count, count - 1));
}

}  // namespace

std::vector<DocumentRequests> read_requests(const std::filesystem::path& file) {
  const std::string text = decompressed_file(file);
  std::vector<DocumentRequests> documents;
  std::optional<RequestLine> before;
  int64_t number = 0;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    const std::string_view line = std::string_view(text).substr(begin, end - begin);
    begin = end + 1;
    ++number;
    if (line.empty()) continue;
    RequestLine request(line, fmt::format("{}, line {}", file.string(), number));
    if (request.doc_id() >= kFirstWithoutContext) continue;
    if (!before || before->doc_id() != request.doc_id()) {
      if (before) check_label(*before, documents.back());
      DocumentRequests& document = documents.emplace_back();
      document.document = std::ssize(documents) - 1;
      auto values = std::make_shared<jinja::Dict>();
      values->set(jinja::Value::string("doc_id"), jinja::Value::integer(request.doc_id()));
      document.values = jinja::Value::of(jinja::Kind::kDict, std::move(values));
    }
    add_choice(request, documents.back());
    before = std::move(request);
  }
  if (!before) fail(ErrorCode::kInvalid, "{}: there are no requests", file.string());
  check_label(*before, documents.back());
  for (DocumentRequests& document : documents) {
    if (document.choices.size() == 1) document.target = jinja::Value::integer(0);
  }
  return documents;
}

}  // namespace skein
