// The report as a page: tables, and examples to open.
#include <fmt/format.h>

#include "skein/base/text/units.h"
#include "skein/base/text/visible_text.h"
#include "skein/prepare/clean/clean.h"

namespace skein {
namespace {

constexpr const char* kHead = R"(<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Cleaning</title>
<style>
body { font: 15px/1.5 system-ui, sans-serif; max-width: 62rem; margin: 2rem auto; padding: 0 1rem;
       color: #222; background: #fff }
table { border-collapse: collapse; width: 100% }
td, th { text-align: right; padding: .15rem .6rem; border-bottom: 1px solid #ddd }
td:first-child, th:first-child, td.meaning { text-align: left }
.bar { background: linear-gradient(#7aa6d6, #7aa6d6) no-repeat left / var(--share) 100% }
pre { white-space: pre-wrap; overflow-wrap: anywhere; background: #f5f5f5; padding: .6rem;
      border-left: 3px solid #7aa6d6; margin: .3rem 0 1rem }
summary { cursor: pointer }
small { color: #666 }
@media (prefers-color-scheme: dark) {
  body { color: #ddd; background: #181818 } pre { background: #242424 }
  td, th { border-color: #444 } small { color: #999 }
}
</style>
)";

// Text of unknown origin as text of a page: markup is shown, and neither controls nor turns of the
// direction of writing take effect.
std::string escaped(std::string_view text) {
  std::string page;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    for (const char c : visible_text(text.substr(begin, end - begin), INT64_MAX)) {
      switch (c) {
        case '&':
          page += "&amp;";
          break;
        case '<':
          page += "&lt;";
          break;
        case '>':
          page += "&gt;";
          break;
        case '"':
          page += "&quot;";
          break;
        default:
          page += c;
      }
    }
    if (end < text.size()) page += '\n';
    begin = end + 1;
  }
  return page;
}

std::string row(std::string_view name, std::string_view meaning, int64_t count, int64_t of,
                int64_t num_bytes) {
  const double share = of == 0 ? 0 : 100.0 * static_cast<double>(count) / static_cast<double>(of);
  return fmt::format(
      "<tr><td>{}<td class=meaning><small>{}</small><td>{}<td class=bar style=\"--share:{:.2f}%\">"
      "{:.2f} %<td>{}\n",
      escaped(name), escaped(meaning), count, share, share, format_bytes(num_bytes));
}

std::string meaning_of(const RuleInfo& rule, const CleanRules& rules) {
  return fmt::format("{} ({})", rule.meaning, rules.value_text(rule.rule));
}

std::string drops(const CleanReport& report, const CleanRules& rules) {
  std::string page = "<h2>Documents</h2>\n<table><tr><th>rule<th><th>documents<th>share<th>bytes\n";
  page += row("read", "", report.num_documents, report.num_documents, report.num_bytes);
  for (const RuleInfo& rule : cleaning_rules()) {
    if (rule.kind != RuleKind::kDrops || !rules.is_on(rule.rule)) continue;
    const RuleCount& taken = report.taken.of(rule.rule);
    page += row(rule.name, meaning_of(rule, rules), taken.num_taken, report.num_documents,
                taken.num_bytes);
  }
  return page + row("kept", "", report.num_kept, report.num_documents, report.num_kept_bytes) +
         "</table>\n";
}

std::string lines(const CleanReport& report, const CleanRules& rules) {
  std::string page =
      "<h2>Lines of documents that were kept</h2>\n"
      "<table><tr><th>rule<th><th>lines<th>bytes\n";
  for (const RuleInfo& rule : cleaning_rules()) {
    const bool is_of_lines =
        rule.kind == RuleKind::kCutsLines || rule.kind == RuleKind::kChangesLines;
    if (!is_of_lines || !rules.is_on(rule.rule)) continue;
    const RuleCount& taken = report.taken.of(rule.rule);
    page += fmt::format("<tr><td>{}<td class=meaning><small>{}</small><td>{}<td>{}\n", rule.name,
                        escaped(meaning_of(rule, rules)), taken.num_taken,
                        format_bytes(taken.num_bytes));
  }
  return page + "</table>\n";
}

std::string examples(const CleanReport& report) {
  std::string page = "<h2>Examples</h2>\n";
  for (const RuleInfo& rule : cleaning_rules()) {
    const auto those = report.examples.find(rule.name);
    if (those == report.examples.end()) continue;
    page += fmt::format("<details><summary>{} <small>{}</small></summary>\n", rule.name,
                        escaped(rule.meaning));
    for (const CleanExample& example : those->second) {
      page += fmt::format("<small>{}, record {}</small><pre>{}</pre>\n", escaped(example.source),
                          example.record, escaped(example.excerpt));
    }
    page += "</details>\n";
  }
  return page;
}

}  // namespace

std::string to_html(const CleanReport& report, const CleanRules& rules) {
  std::string page = kHead;
  page += "<h1>Cleaning</h1>\n" + drops(report, rules) + lines(report, rules);
  page += fmt::format(
      "<p>{} documents repaired; {} e-mail addresses, {} IP addresses and {} telephone numbers "
      "replaced.</p>\n",
      report.num_repaired, report.replaced.num_emails, report.replaced.num_ips,
      report.replaced.num_phones);
  return page + examples(report) + "</html>\n";
}

}  // namespace skein
