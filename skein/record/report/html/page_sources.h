// The files beside this one that make up the page. cmake/embed_files.cmake writes their text into a
// source of the build.
#pragma once

#include <string_view>

namespace skein {

extern const std::string_view kReportPageHtml;  // report_page.html
extern const std::string_view kReportPageCss;   // report_page.css
extern const std::string_view kReportChartsJs;  // report_charts.js
extern const std::string_view kReportTablesJs;  // report_tables.js
extern const std::string_view kReportPageJs;    // report_page.js

}  // namespace skein
