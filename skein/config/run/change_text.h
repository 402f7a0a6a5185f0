// The texts in which changes name what a run reads, read back: compare_configurations writes them
// into the messages and the events of a run.
//
// Format  of data.source "web 0.7 (8410 documents, 123675431 bytes, xxh3 90ab12cd), code 0.3 (…)";
//         of one corpus, also where it became a mixture, "/data/web.arrow (8410 documents, …)"; of
//         a tokenizer "/data/tokenizer (4096 tokens, xxh3 90ab12cd)"
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace skein {

struct SourceText {
  std::string name;
  double weight = 1;
  std::string content;  // "(8410 documents, 123675431 bytes, xxh3 90ab12cd)"
  bool operator==(const SourceText&) const = default;
};

// Nothing where the text is not that of a mixture.
std::optional<std::vector<SourceText>> parse_sources(std::string_view text);

// The path in the text of one corpus or of a tokenizer; "" where there is none.
std::string path_in(std::string_view text);

// Whether two texts of a key mean the same, wherever the files lie. Where only one names the hash
// of loss spans (", loss_spans 56ef78ab" behind that of the text), the text decides.
bool same_value(std::string_view a, std::string_view b);

// "web 0.7, code 0.3": a mixture without what identifies its texts; of other keys the text itself.
std::string brief_value(const std::string& text);

// "web has 0.7 there and 0.2 in the configuration; code is only there": how two mixtures differ.
// Nothing where one of the texts is not that of a mixture.
std::string different_sources(std::string_view there, std::string_view here);

}  // namespace skein
