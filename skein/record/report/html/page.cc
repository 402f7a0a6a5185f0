#include "skein/record/report/html/page.h"

#include "skein/base/error.h"
#include "skein/base/text/json_text.h"
#include "skein/base/version.h"
#include "skein/record/report/html/page_sources.h"
#include "skein/record/report/html/thin_curve.h"

namespace skein {
namespace {

// `mark` stands once in the template.
void put(std::string& page, std::string_view mark, std::string_view text) {
  const size_t place = page.find(mark);
  if (place == std::string::npos) {
    fail(ErrorCode::kInternal, "the template of the report has no {}", mark);
  }
  page.replace(place, mark.size(), text);
}

OrderedJson differences_json(const ComparedRuns& compared) {
  OrderedJson list = OrderedJson::array();
  for (const SettingDifference& difference : differences_of(compared)) {
    OrderedJson row = OrderedJson::array({difference.key});
    for (const std::optional<std::string>& value : difference.values) {
      row.push_back(value ? OrderedJson(*value) : OrderedJson(nullptr));
    }
    list.push_back(std::move(row));
  }
  return list;
}

}  // namespace

std::string script_json(const OrderedJson& json) {
  std::string text;
  for (const char c : json_text(json)) {
    if (c == '<') {
      text += "\\u003c";
    } else {
      text += c;
    }
  }
  return text;
}

std::string_view report_page_beginning() {
  return kReportPageHtml.substr(0, kReportPageHtml.find('\n', kReportPageHtml.find("<html")));
}

std::string report_page(const ComparedRuns& compared, std::vector<OrderedJson> runs, double time) {
  OrderedJson data = OrderedJson::object();
  data["version"] = kVersion;
  data["time"] = time;
  data["most_points"] = kMostCurvePoints;
  data["differences"] = differences_json(compared);
  data["notes"] = compared.notes;
  data["runs"] = OrderedJson::array();
  for (OrderedJson& run : runs) data["runs"].push_back(std::move(run));

  std::string page(kReportPageHtml);
  put(page, "/* report_page.css */", kReportPageCss);
  put(page, "/* report_charts.js */", kReportChartsJs);
  put(page, "/* report_tables.js */", kReportTablesJs);
  put(page, "/* report_page.js */", kReportPageJs);
  put(page, "/* data */", script_json(data));  // last: a name in it may be spelled like a mark
  return page;
}

}  // namespace skein
