// Several runs beside each other, for a terminal: the settings that differ, then the figures, a
// column a run. What is wider than the terminal follows below, in blocks of as many runs as fit.
#pragma once

#include <string>

#include "skein/record/report/compare/compared_run.h"

namespace skein {

// `width`: columns; a block has one run at least.
std::string comparison_text(const ComparedRuns& runs, int width);

// {"runs": [{"run", "name", "state", "metrics": {name: value}, "report", "notes"}],
//  "differences": [{"key", "values": [text or null, one a run]}], "notes"}
OrderedJson comparison_json(const ComparedRuns& runs);

}  // namespace skein
