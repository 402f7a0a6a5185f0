// A page of one or more runs, in one file: curves, spikes, time, memory, evaluations, settings. It
// needs JavaScript and no network; its policy (CSP) forbids every request.
//
// Sources  report_page.html, report_page.css, report_charts.js, report_page.js in this folder;
//          cmake/embed_files.cmake makes a source of them
// Data     one JSON object in a <script type="application/json">, which page_run documents. Every
//          '<' in it is \u003c, so that no name of a run or a file can end the block; the script
//          writes texts only as text
// Size     a curve has kMostCurvePoints points at most: about 0.3 MB a run
#pragma once

#include <string>
#include <vector>

#include "skein/record/report/compare/compared_run.h"

namespace skein {

// What the page shows of a run, in JSON: {"name", "folder", "state", "figures": [[name, text]],
// "report", "axis": {"step", "tokens", "hours"}, "curves": {metric: {"step", "value", "means"}},
// "num_steps", "validations", "spikes", "marks", "memory", "evaluations", "settings", "notes"}.
OrderedJson page_run(const ComparedRun& run, const RunReport& report);

// `runs`: page_run of each of `compared`, in the same order.
std::string report_page(const ComparedRuns& compared, std::vector<OrderedJson> runs, double time);

// What every such page begins with.
std::string_view report_page_beginning();

// JSON for a <script>: no '<' stands in it.
std::string script_json(const OrderedJson& json);

}  // namespace skein
