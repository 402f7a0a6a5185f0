#include "skein/prepare/read/html.h"

#include <algorithm>
#include <cctype>

namespace skein {
namespace {

bool begins_with(std::string_view text, std::string_view lower) {
  const auto is_same = [](char a, char b) {
    return std::tolower(static_cast<unsigned char>(a)) == b;
  };
  return text.size() >= lower.size() && std::equal(lower.begin(), lower.end(), text.begin(),
                                                   [&](char b, char a) { return is_same(a, b); });
}

// Behind `end`; empty where it does not come.
std::string_view behind(std::string_view text, std::string_view end) {
  const size_t at = text.find(end);
  return at == text.npos ? std::string_view() : text.substr(at + end.size());
}

}  // namespace

bool is_html(std::string_view text) {
  constexpr std::string_view kMark = "\xef\xbb\xbf", kSpace = " \t\r\n\f";
  if (text.starts_with(kMark)) text.remove_prefix(kMark.size());
  while (true) {
    text.remove_prefix(std::min(text.find_first_not_of(kSpace), text.size()));
    if (!text.starts_with('<')) return false;
    if (text.starts_with("<!--")) {
      text = behind(text, "-->");
    } else if (begins_with(text, "<?xml")) {
      text = behind(text, "?>");
    } else {
      break;
    }
  }
  if (begins_with(text, "<!doctype")) {
    text.remove_prefix(std::string_view("<!doctype").size());
    text.remove_prefix(std::min(text.find_first_not_of(kSpace), text.size()));
    return begins_with(text, "html");
  }
  constexpr std::string_view kTag = "<html";
  if (!begins_with(text, kTag)) return false;
  return text.size() == kTag.size() || kSpace.find(text[kTag.size()]) != kSpace.npos ||
         text[kTag.size()] == '>';
}

}  // namespace skein
