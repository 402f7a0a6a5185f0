// The functions behind the names of filters; for filters.cc and the files that hold them.
#pragma once

#include "skein/jinja/values/budget.h"
#include "skein/jinja/values/value.h"

namespace skein::jinja {

using Filter = Value (*)(const Value&, const Arguments&, Budget&);

// filters_text.cc
Value filter_capitalize(const Value&, const Arguments&, Budget&);
Value filter_center(const Value&, const Arguments&, Budget&);
Value filter_escape(const Value&, const Arguments&, Budget&);
Value filter_force_escape(const Value&, const Arguments&, Budget&);
Value filter_format(const Value&, const Arguments&, Budget&);
Value filter_indent(const Value&, const Arguments&, Budget&);
Value filter_join(const Value&, const Arguments&, Budget&);
Value filter_lower(const Value&, const Arguments&, Budget&);
Value filter_replace(const Value&, const Arguments&, Budget&);
Value filter_safe(const Value&, const Arguments&, Budget&);
Value filter_string(const Value&, const Arguments&, Budget&);
Value filter_title(const Value&, const Arguments&, Budget&);
Value filter_to_json(const Value&, const Arguments&, Budget&);
Value filter_trim(const Value&, const Arguments&, Budget&);
Value filter_upper(const Value&, const Arguments&, Budget&);
Value filter_word_count(const Value&, const Arguments&, Budget&);

// filters_number.cc
Value filter_abs(const Value&, const Arguments&, Budget&);
Value filter_default(const Value&, const Arguments&, Budget&);
Value filter_float(const Value&, const Arguments&, Budget&);
Value filter_int(const Value&, const Arguments&, Budget&);
Value filter_round(const Value&, const Arguments&, Budget&);
Value filter_sum(const Value&, const Arguments&, Budget&);

// filters_items.cc
Value filter_attr(const Value&, const Arguments&, Budget&);
Value filter_batch(const Value&, const Arguments&, Budget&);
Value filter_dict_sort(const Value&, const Arguments&, Budget&);
Value filter_first(const Value&, const Arguments&, Budget&);
Value filter_items(const Value&, const Arguments&, Budget&);
Value filter_last(const Value&, const Arguments&, Budget&);
Value filter_length(const Value&, const Arguments&, Budget&);
Value filter_list(const Value&, const Arguments&, Budget&);
Value filter_map(const Value&, const Arguments&, Budget&);
Value filter_max(const Value&, const Arguments&, Budget&);
Value filter_min(const Value&, const Arguments&, Budget&);
Value filter_reject(const Value&, const Arguments&, Budget&);
Value filter_reject_attr(const Value&, const Arguments&, Budget&);
Value filter_reverse(const Value&, const Arguments&, Budget&);
Value filter_select(const Value&, const Arguments&, Budget&);
Value filter_select_attr(const Value&, const Arguments&, Budget&);
Value filter_slice(const Value&, const Arguments&, Budget&);
Value filter_sort(const Value&, const Arguments&, Budget&);
Value filter_unique(const Value&, const Arguments&, Budget&);

// value.a.0.b, where `path` is "a.0.b" or a number; what a sandbox's environment.getitem gives.
Value value_at(const Value& value, const Value& path, Budget& budget);

// Text in lower case, other values as they are.
Value without_case(const Value& value, Budget& budget);

}  // namespace skein::jinja
