// YAML text as a value, as lm-evaluation-harness reads its task files with PyYAML.
//
//   plain scalars    plain_scalar.h; quoted and block scalars are text
//   tags             !!str, !!int, !!float, !!bool, !!null, !!seq, !!map, and `!function a.b`: a
//                    callable with the name "a.b", which throws Refusal where it is called
//   `<<: *anchor`    the keys of the dict that it names, before the dict's own, which override them
//   equal keys       the last value, in the first one's place
//   keys             text, numbers, bools, none
//
// Limits  YamlLimits. An alias counts as many nodes as it stands for, a scalar one more for each 64
//         bytes
// Errors  kInvalid, "FILE: line L, column C: ..."; kUnsupported for other tags (!!set, !!binary,
//         !!timestamp, !!omap, !!pairs), and for `<<: [*a, *b]` if both have a key with different
//         values: versions of PyYAML differ in which value they keep
// Source  YAML 1.1; PyYAML 6.0.4. libyaml 0.2 parses, as in PyYAML's CSafeLoader: yaml-cpp 0.7
//         reads quoted scalars that end in blank lines, and `>+`, differently
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "skein/jinja/values/value.h"

namespace skein {

struct YamlLimits {
  int64_t max_bytes = 4 << 20;
  int max_depth = 100;  // of lists and dicts inside each other
  int64_t max_nodes = 500'000;
};

// What `!function a.b` gives.
struct YamlFunction : jinja::Callable {
  std::string file;  // the YAML file that names it
};

// The one document of `text`; none where it is empty. `what` names it in errors: a file.
jinja::Value yaml_value(std::string_view text, const std::string& what,
                        const YamlLimits& limits = {});

}  // namespace skein
