#include "skein/config/run/change_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>

namespace skein {
namespace {

const SourceText* same_text(const std::vector<SourceText>& sources, const std::string& content) {
  const auto found = std::find_if(sources.begin(), sources.end(),
                                  [&](const SourceText& one) { return one.content == content; });
  return found == sources.end() ? nullptr : &*found;
}

const SourceText* find_source(const std::vector<SourceText>& sources, const std::string& name) {
  const auto found = std::find_if(sources.begin(), sources.end(),
                                  [&](const SourceText& one) { return one.name == name; });
  return found == sources.end() ? nullptr : &*found;
}

size_t begin_of_content(std::string_view text) {
  const size_t at = text.rfind(" (");
  return at == text.npos || !text.ends_with(")") ? text.npos : at;
}

// Where " (8410 documents, …)" begins.
size_t find_content(std::string_view text) {
  size_t at = text.find(" (");
  for (; at != text.npos; at = text.find(" (", at + 1)) {
    const size_t behind = text.find_first_not_of("0123456789", at + 2);
    if (behind > at + 2 && behind != text.npos && text.substr(behind).starts_with(" documents, ")) {
      break;
    }
  }
  return at;
}

bool is_path(std::string_view text) {
  return text.starts_with("/") || text.substr(0, text.find(' ')).find("://") != text.npos;
}

// Only a change of the loss spans names their hashes.
constexpr std::string_view kSpans = ", loss_spans ";

std::string without_spans(std::string_view text) {
  std::string made(text);
  for (size_t at = made.find(kSpans); at != made.npos; at = made.find(kSpans, at)) {
    made.erase(at, made.find(')', at) - at);
  }
  return made;
}

}  // namespace

std::optional<std::vector<SourceText>> parse_sources(std::string_view text) {
  if (is_path(text)) return std::nullopt;
  std::vector<SourceText> sources;
  while (!text.empty()) {
    const size_t content = find_content(text);
    const size_t end = text.find(')', content);  // npos, too, where there is no content
    if (end == text.npos) return std::nullopt;
    const std::string_view named = text.substr(0, content);
    const size_t space = named.rfind(' ');
    if (space == named.npos) return std::nullopt;
    SourceText& source = sources.emplace_back();
    source.name = named.substr(0, space);
    source.content = text.substr(content + 1, end - content);
    const char* const last = named.data() + named.size();
    const auto read = std::from_chars(named.data() + space + 1, last, source.weight);
    if (read.ec != std::errc() || read.ptr != last) return std::nullopt;
    text.remove_prefix(end + 1);
    if (text.empty()) break;
    if (!text.starts_with(", ")) return std::nullopt;
    text.remove_prefix(2);
  }
  if (sources.empty()) return std::nullopt;
  return sources;
}

std::string path_in(std::string_view text) {
  const size_t end = begin_of_content(text);
  return end == text.npos || !is_path(text) ? "" : std::string(text.substr(0, end));
}

bool same_value(std::string_view a, std::string_view b) {
  const bool in_a = a.find(kSpans) != a.npos, in_b = b.find(kSpans) != b.npos;
  if (in_a && !in_b) return same_value(without_spans(a), b);
  if (in_b && !in_a) return same_value(a, without_spans(b));
  if (path_in(a).empty() || path_in(b).empty()) return a == b;
  return a.substr(begin_of_content(a)) == b.substr(begin_of_content(b));
}

std::string brief_value(const std::string& text) {
  const auto sources = parse_sources(text);
  if (!sources) return text;
  std::vector<std::string> parts;
  for (const SourceText& source : *sources) {
    parts.push_back(fmt::format("{} {}", source.name, source.weight));
  }
  return fmt::format("{}", fmt::join(parts, ", "));
}

std::string different_sources(std::string_view there, std::string_view here) {
  const auto before = parse_sources(there), after = parse_sources(here);
  if (!before || !after) return "";
  std::vector<std::string> parts;
  for (const SourceText& was : *before) {
    const SourceText* now = find_source(*after, was.name);
    if (now == nullptr) {
      const SourceText* renamed = same_text(*after, was.content);
      parts.push_back(fmt::format("{} {} {} is only there", was.name, was.weight, was.content));
      if (renamed != nullptr && find_source(*before, renamed->name) == nullptr) {
        parts.back() += fmt::format(", though {} is the same text by another name", renamed->name);
      }
    } else if (was.content != now->content) {
      parts.push_back(fmt::format("{} is another text: {} there and {} in the configuration",
                                  was.name, was.content, now->content));
    } else if (was.weight != now->weight) {
      parts.push_back(fmt::format("{} has weight {} there and {} in the configuration", was.name,
                                  was.weight, now->weight));
    }
  }
  for (const SourceText& now : *after) {
    if (find_source(*before, now.name) != nullptr) continue;
    parts.push_back(
        fmt::format("{} {} {} is only in the configuration", now.name, now.weight, now.content));
  }
  if (parts.empty()) parts.emplace_back("the same sources in another order");
  return fmt::format("{}", fmt::join(parts, ", "));
}

}  // namespace skein
